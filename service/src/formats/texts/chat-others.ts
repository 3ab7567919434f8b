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

/** A part of a content; its unknown members, and those of the object in it, are foreign parts. */
const partWith = (members: Readonly<Record<string, MemberReader>>) =>
  objectWith({ type: seen, ...members }, seen)

const part = byType({
  text: partWith({ text: seen, cache_control: cacheControl }),
  refusal: partWith({ refusal: seen }),
  image_url: partWith({ image_url: objectWith({ url: seen, detail: setting }, seen) }),
  file: partWith({ file: objectWith({ filename: said, file_data: said, file_id: setting }, seen) }),
  input_audio: partWith({ input_audio: objectWith({ data: seen, format: setting }, seen) }),
})

/** Of the arguments of a function and the input of a custom tool, only one is read. */
const called = objectWith(
  {
    name: said,
    arguments: (value, add, owner) =>
      (typeof owner['input'] === 'string' ? free : said)(value, add, owner),
    input: said,
  },
  seen,
)

const call = objectWith(
  {
    id: setting,
    type: setting,
    function: called,
    custom: (value, add, owner) => (isObject(owner['function']) ? free : called)(value, add, owner),
  },
  seen,
)

const message = objectWith(
  {
    role: seen,
    content: textOrListOf(part),
    name: setting,
    tool_calls: eachOf(call),
    tool_call_id: setting,
    function_call: objectWith({ name: seen, arguments: seen }),
    reasoning: said,
    reasoning_signature: sealed,
  },
  seen,
)

const named = settingsOf('name')
const chosenTool = {
  type: setting,
  name: setting,
  function: named,
  custom: named,
  server_label: setting,
}
const chosenTools = { mode: setting, tools: eachOf(objectWith(chosenTool)) }
/** In Responses the members of `allowed_tools` stand beside the type. */
const toolChoice = objectWith({
  ...chosenTool,
  ...chosenTools,
  allowed_tools: objectWith(chosenTools),
})
/** A mode, or an object. */
const modeOr =
  (reading: MemberReader): MemberReader =>
  (value, add, owner) =>
    (typeof value === 'string' ? setting : reading)(value, add, owner)

/** A schema is read only where it is asked for. */
const responseFormat = objectWith(
  {
    type: setting,
    json_schema: (value, add, owner) =>
      owner['type'] === 'json_schema' ? undefined : free(value, add, owner),
  },
  seen,
)

/** The names are numbers of tokens; some servers take texts instead. */
const tokenBias: MemberReader = (value, add, owner) =>
  free(value, (text) => (/^\d+$/.test(text) ? undefined : add(text)), owner)

/** Settings that Responses has too. */
export const openAiSettings = {
  model: seen, // one of the catalogue's
  tool_choice: modeOr(toolChoice),
  user: identity,
  safety_identifier: identity,
  metadata: description,
  stream_options: settingsOf('include_usage', 'include_obfuscation'),
  service_tier: seen, // never forwarded
  prompt_cache_key: identity,
  prompt_cache_retention: setting,
  prompt_cache_options: settingsOf('mode', 'ttl'),
  flagged_categories: seen, // never forwarded
} satisfies Record<string, MemberReader>

const members = {
  ...openAiSettings,
  messages: eachOf(message),
  tools: seen,
  functions: seen,
  function_call: modeOr(named),
  stop: free,
  reasoning_effort: setting,
  response_format: responseFormat,
  logit_bias: tokenBias,
  modalities: setting,
  verbosity: setting,
} satisfies Record<string, MemberReader>

/** The members that a turn has, and settings. All others are foreign parts. */
export const chatMembers: ReadonlySet<string> = new Set(Object.keys(members))

/** The other texts of a request for Chat Completions. */
export const chatOthers: MemberReader = objectWith(members, seen)
