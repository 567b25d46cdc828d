package slacksim

import "time"

// Slack's published limits. Lengths are characters (runes), not bytes, unless
// the name says so. Source: Slack's Block Kit and Web API reference, unless
// another source is named.
const (
	// MaxMessageBlocks is the number of blocks in one message.
	MaxMessageBlocks = 50
	// MaxViewBlocks is the number of blocks in one modal.
	MaxViewBlocks = 100
	// MaxBlockID is the length of a block_id.
	MaxBlockID = 255
	// MaxActionID is the length of an action_id.
	MaxActionID = 255
	// MaxSectionText is the length of a section's text, at least 1.
	MaxSectionText = 3000
	// MaxSectionFields is the number of fields in a section.
	MaxSectionFields = 10
	// MaxFieldText is the length of one section field.
	MaxFieldText = 2000
	// MaxContextElements is the number of elements in a context block.
	MaxContextElements = 10
	// MaxActionsElements is the number of elements in an actions block.
	MaxActionsElements = 25
	// MaxHeaderText is the length of a header, plain_text only.
	MaxHeaderText = 150
	// MaxButtonText is the length of a button's label, plain_text only.
	MaxButtonText = 75
	// MaxButtonValue is the length of a button's value.
	MaxButtonValue = 2000
	// MaxURL is the length of a button's or image's URL.
	MaxURL = 3000
	// MaxAccessibilityLabel is the length of a button's label for screen readers.
	MaxAccessibilityLabel = 75
	// MaxConfirmTitle is the length of a confirmation dialog's title.
	MaxConfirmTitle = 100
	// MaxConfirmText is the length of a confirmation dialog's text.
	MaxConfirmText = 300
	// MaxConfirmButton is the length of each confirmation button's label.
	MaxConfirmButton = 30
	// MaxOptionText is the length of an option's label.
	MaxOptionText = 75
	// MaxOptionValue is the length of an option's value.
	MaxOptionValue = 150
	// MaxSelectOptions is the number of options in a select menu.
	MaxSelectOptions = 100
	// MaxOverflowOptions is the number of options in an overflow menu.
	MaxOverflowOptions = 5
	// MaxChoiceOptions is the number of options in radio buttons or checkboxes.
	MaxChoiceOptions = 10
	// MaxPlaceholder is the length of a placeholder.
	MaxPlaceholder = 150
	// MaxAltText is the length of an image's alternative text.
	MaxAltText = 2000
	// MaxMarkdownText is the length of all markdown blocks of one message together.
	MaxMarkdownText = 12000
	// MaxInputLabel is the length of an input's label and of its hint.
	MaxInputLabel = 2000
	// MaxInputLength is the greatest max_length of a plain-text input.
	MaxInputLength = 3000
	// MaxViewTitle is the length of a modal's title and of its buttons.
	MaxViewTitle = 24
	// MaxCallbackID is the length of a view's callback_id and external_id.
	MaxCallbackID = 255
	// MaxPrivateMetadata is the length of a view's private_metadata.
	MaxPrivateMetadata = 3000
	// MaxViewStack is the number of views one modal can hold on its stack.
	MaxViewStack = 3
	// MaxPostText is the length of a posted text. Slack truncates beyond it;
	// the simulator refuses, because cut text is lost text.
	MaxPostText = 40000
	// MaxUpdateTextBytes is the size of an updated text, in bytes. Slack
	// documents 4,000 characters and was observed to count bytes.
	MaxUpdateTextBytes = 4000
	// MaxBlocksText is the length of all texts in the blocks of one message
	// together. Not documented; observed in slackapi/bolt-js#2509.
	MaxBlocksText = 13200
	// MaxAttachments is the number of attachments of one message.
	MaxAttachments = 100
	// MaxMetadataBytes is the size of a message's metadata as JSON. Slack
	// publishes no number; this is a cautious one.
	MaxMetadataBytes = 8000
	// MaxViewBytes is the size of a view as JSON (view_too_large).
	MaxViewBytes = 250 * 1000
	// MaxBodyBytes is the size of one request to the simulator.
	MaxBodyBytes = 1 << 20
	// MaxResponseURLUses is how often one response_url can be used.
	MaxResponseURLUses = 5
	// ResponseURLLife is how long a response_url works.
	ResponseURLLife = 30 * time.Minute
	// TriggerLife is how long a trigger_id works; it works once.
	TriggerLife = 3 * time.Second
	// AckLimit is how long an app may take to answer a click, a slash command
	// or a submission.
	AckLimit = 3 * time.Second
)
