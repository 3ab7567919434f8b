import { isCustomTool } from '@gatehouse/contract/message'

import { isObject } from '#formats/json-values.ts'

import {
  byType,
  cacheControl,
  description,
  free,
  identity,
  eachOf,
  objectWith,
  type MemberReader,
  said,
  sealed,
  seen,
  setting,
  settingsOf,
  textOrListOf,
} from './other-texts.ts'

/** In a text a list of sources, which is read with it; elsewhere a setting. */
const citations: MemberReader = (value, add, owner) =>
  Array.isArray(value) ? undefined : citing(value, add, owner)
const citing = settingsOf('enabled')

/** A block whose unknown members are foreign parts. */
const blockWith = (members: Readonly<Record<string, MemberReader>>) =>
  objectWith({ type: seen, cache_control: cacheControl, citations, ...members }, seen)

/** A text outside of messages, whose unknown members belong to no message. */
const textBlock = objectWith({ type: seen, text: said, cache_control: cacheControl })

const source: MemberReader = (value, add, owner) => sources(value, add, owner)
const sources = byType({
  base64: objectWith({ type: seen, media_type: setting, data: seen }),
  url: objectWith({ type: seen, url: seen }),
  file: objectWith({ type: seen, file_id: setting }),
  text: objectWith({ type: seen, media_type: setting, data: seen }),
  content: objectWith({
    type: seen,
    content: textOrListOf(
      byType({
        text: textBlock,
        image: objectWith({ type: seen, source, cache_control: cacheControl }),
      }),
    ),
  }),
})

const readable = {
  text: blockWith({ text: said }),
  image: blockWith({ source }),
  document: blockWith({ source, title: seen }),
  search_result: blockWith({ source: seen, title: seen, content: eachOf(textBlock) }),
}

const block = byType({
  ...readable,
  tool_use: blockWith({
    id: setting,
    name: seen,
    input: seen,
    caller: settingsOf('type', 'tool_id'),
  }),
  tool_result: blockWith({
    tool_use_id: setting,
    content: textOrListOf(byType(readable)),
    is_error: seen,
  }),
  thinking: objectWith({ type: seen, thinking: seen, signature: sealed }),
  redacted_thinking: objectWith({ type: seen, data: sealed }),
})

const customTool = objectWith(
  {
    type: setting,
    name: seen,
    description: seen,
    input_schema: seen,
    strict: seen,
    cache_control: cacheControl,
    allowed_callers: setting,
    defer_loading: setting,
  },
  seen,
)
const tool: MemberReader = (value, add, owner) =>
  isObject(value) && isCustomTool(value) ? customTool(value, add, owner) : undefined

const members = {
  model: seen, // one of the catalogue's
  messages: eachOf(
    objectWith({
      role: seen,
      content: textOrListOf(block),
      // Of instructions between other messages.
      clear_at: setting,
      output_config: settingsOf('effort'),
    }),
  ),
  system: textOrListOf(textBlock),
  tools: eachOf(tool),
  tool_choice: settingsOf('type', 'name', 'disable_parallel_tool_use'),
  max_tokens: seen,
  temperature: seen,
  top_p: seen,
  top_k: seen,
  stop_sequences: free,
  stream: seen,
  thinking: settingsOf('type', 'budget_tokens', 'display'),
  output_config: objectWith(
    { effort: setting, format: objectWith({ type: setting, schema: seen }) },
    seen,
  ),
  metadata: objectWith({ user_id: identity }, description),
  // Never forwarded.
  service_tier: seen,
  inference_geo: seen,
  speed: seen,
  cache_control: cacheControl,
  flagged_categories: seen,
} satisfies Record<string, MemberReader>

/** The members that a turn has, and settings. All others are foreign parts. */
export const messageMembers: ReadonlySet<string> = new Set(Object.keys(members))

/** The other texts of a request for Messages. */
export const messageOthers: MemberReader = objectWith(members, seen)
