import type uPlot from "uplot";
import type { ChartColors } from "./colors";
import type { Mark } from "./marks";
import type { Live } from "./options";

// The narrowest band in CSS pixels: shorter ones would vanish.
const leastWidth = 2;

/** Bands, lines and thresholds of a chart, drawn below its curves. */
export function drawMarks(plot: uPlot, live: Live, colors: ChartColors): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (const mark of live.marks) drawMark(plot, mark, colors.marks[mark.kind]);
  for (const { value, tone } of live.thresholds) {
    drawThreshold(plot, value, tone === "critical" ? colors.critical : colors.warning);
  }
  ctx.restore();
}

function drawMark(plot: uPlot, mark: Mark, color: string): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  const x = (ms: number) => plot.valToPos(ms / 1000, "x", true);
  const left = x(mark.from);
  if (mark.kind === "action" || mark.kind === "change") {
    const width = Math.max(x(mark.to) - left, leastWidth * ratio);
    ctx.fillStyle = color;
    ctx.globalAlpha = 0.14;
    ctx.fillRect(left, bbox.top, width, bbox.height);
    // A strip at the top tells bands that lie over each other apart: actions above, changes below.
    ctx.globalAlpha = 0.9;
    const strip = 3 * ratio;
    ctx.fillRect(left, bbox.top + (mark.kind === "change" ? strip + ratio : 0), width, strip);
  }
  ctx.globalAlpha = 0.9;
  ctx.strokeStyle = color;
  ctx.lineWidth = ratio;
  ctx.setLineDash(mark.kind === "resolved" ? [4 * ratio, 3 * ratio] : []);
  line(ctx, left, bbox.top, left, bbox.top + bbox.height);
  ctx.setLineDash([]);
}

function drawThreshold(plot: uPlot, value: number, color: string): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  const y = plot.valToPos(value, "y", true);
  if (!Number.isFinite(y)) return;
  ctx.globalAlpha = 0.8;
  ctx.strokeStyle = color;
  ctx.lineWidth = ratio;
  ctx.setLineDash([2 * ratio, 4 * ratio]);
  line(ctx, bbox.left, y, bbox.left + bbox.width, y);
  ctx.setLineDash([]);
}

function line(ctx: CanvasRenderingContext2D, x1: number, y1: number, x2: number, y2: number): void {
  ctx.beginPath();
  ctx.moveTo(x1, y1);
  ctx.lineTo(x2, y2);
  ctx.stroke();
}
