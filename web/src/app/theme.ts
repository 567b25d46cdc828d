import { Alert, Anchor, createTheme, type MantineColorsTuple, Modal, Tooltip } from "@mantine/core";

// Sea green: no severity has this colour.
const tide: MantineColorsTuple = [
  "#e9f7f4",
  "#d5ebe6",
  "#a9d6cb",
  "#7ac0af",
  "#54ae98",
  "#3ca38a",
  "#2d8f79",
  "#1f7a66",
  "#156958",
  "#07584a",
];

// Darker and bluer than the library's, and far enough apart to tell surfaces.
const dark: MantineColorsTuple = [
  "#d6dde4",
  "#aeb9c4",
  "#8c99a6",
  "#64717e",
  "#3a4652",
  "#2a343e",
  "#1c242c",
  "#12181e",
  "#0d1217",
  "#080b0f",
];

// Alerts have the tones of tokens.css, whose text is readable on its background.
const alertTones: Record<string, string> = { red: "bad", yellow: "warning", teal: "good" };

/** Design decisions of the console; colours with a meaning are in tokens.css. */
export const theme = createTheme({
  primaryColor: "tide",
  primaryShade: { light: 7, dark: 7 },
  colors: { tide, dark },
  defaultRadius: "sm",
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, "DejaVu Sans Mono", monospace',
  headings: { fontWeight: "650" },
  respectReducedMotion: true,
  components: {
    // Colour alone does not tell a link from the text around it.
    Anchor: Anchor.extend({ defaultProps: { underline: "always" } }),
    Alert: Alert.extend({
      vars: (_theme, { color }) => {
        const tone = alertTones[color ?? ""] ?? "info";
        return {
          root: {
            "--alert-bg": `var(--hf-${tone}-background)`,
            "--alert-color": `var(--hf-${tone}-text)`,
          },
        };
      },
    }),
    Modal: Modal.extend({
      defaultProps: { centered: true, overlayProps: { backgroundOpacity: 0.55 } },
    }),
    Tooltip: Tooltip.extend({ defaultProps: { withArrow: true } }),
  },
});
