/** The formats that callers speak, each at an endpoint of its own. */
export type CallerFormatName = 'messages' | 'responses' | 'chat_completions'

/** A format that upstreams speak: a name in the registry of formats.ts, as the model catalogue writes it. */
export type UpstreamFormatName = string
