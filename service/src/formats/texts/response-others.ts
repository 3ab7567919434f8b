import { isObject } from '#formats/json-values.ts'

import { openAiSettings } from './chat-others.ts'
import { tokenTexts } from './logprobs.ts'
import {
  byType,
  free,
  eachOf,
  objectWith,
  type MemberReader,
  said,
  sealed,
  seen,
  description,
  setting,
  settingsOf,
  textOrListOf,
} from './other-texts.ts'

/** The tokens of an earlier answer, which some clients send back with it. */
const logprobs: MemberReader = (value, add, owner) => {
  const texts = tokenTexts(value, (other) => token(other, add, owner))
  if (!texts) return free(value, add, owner)
  for (const text of texts) add(text)
}
const token = settingsOf('logprob', 'bytes')

/** A part of a content; its unknown members are foreign parts. */
const partWith = (members: Readonly<Record<string, MemberReader>>) =>
  objectWith({ type: seen, prompt_cache_breakpoint: settingsOf('mode', 'ttl'), ...members }, seen)
const text = partWith({ text: seen, logprobs })

const part = byType({
  input_text: text,
  output_text: text,
  text,
  refusal: partWith({ refusal: seen }),
  input_image: partWith({ image_url: said, file_id: setting, detail: setting }),
  input_file: partWith({
    filename: said,
    file_data: said,
    file_url: said,
    file_id: setting,
    detail: setting,
  }),
})
const content = textOrListOf(part)

/** An item. Its unknown members belong to no message. */
const itemWith = (members: Readonly<Record<string, MemberReader>>) =>
  objectWith({ type: seen, id: setting, status: setting, ...members })

const reasoningTexts = eachOf(objectWith({ type: setting, text: said }))
const output = itemWith({ call_id: setting, output: content })

const item = byType(
  {
    message: itemWith({ role: seen, content, phase: setting }),
    function_call: itemWith({ call_id: setting, name: seen, arguments: seen }),
    custom_tool_call: itemWith({ call_id: setting, name: seen, input: seen }),
    function_call_output: output,
    custom_tool_call_output: output,
    reasoning: itemWith({
      summary: reasoningTexts,
      content: reasoningTexts,
      encrypted_content: sealed,
    }),
  },
  ({ type }) => type ?? 'message',
)

/** A function, of which only what has the right type is read. Its unknown members, and other tools, are foreign parts. */
const functionTool = objectWith(
  {
    type: seen,
    name: seen,
    description: said,
    parameters: (value, add, owner) => (isObject(value) ? undefined : free(value, add, owner)),
    strict: free,
  },
  seen,
)

/** A schema is read only where it is asked for. */
const ofSchema: MemberReader = (value, add, owner) => {
  const isRead = owner['type'] === 'json_schema' && owner['schema'] !== undefined
  if (!isRead) free(value, add, owner)
}
const nameOfSchema: MemberReader = (value, add, owner) =>
  (typeof value === 'string' ? ofSchema : free)(value, add, owner)
const format = objectWith({ type: setting, name: nameOfSchema, schema: ofSchema }, seen)

const members = {
  ...openAiSettings,
  input: textOrListOf(item),
  instructions: seen,
  tools: eachOf(byType({ function: functionTool })),
  parallel_tool_calls: seen,
  text: objectWith({ format, verbosity: setting }),
  temperature: seen,
  top_p: seen,
  reasoning: settingsOf('effort', 'summary', 'generate_summary'),
  stream: seen,
  store: seen,
  include: setting,
  truncation: setting,
  client_metadata: description,
} satisfies Record<string, MemberReader>

/** The members that a turn has, and settings. All others are foreign parts. */
export const responseMembers: ReadonlySet<string> = new Set(Object.keys(members))

/** The other texts of a request for Responses. */
export const responseOthers: MemberReader = objectWith(members, seen)
