import type { DocumentPart, Part, Source, Tool, Turn, TurnMessage } from '#formats/turn.ts'

import { JsonTexts } from './json-texts.ts'
import { visitStrings } from './visit-strings.ts'

/** The texts of a request, as rules see them. Each is one segment. */
export type RequestTexts = {
  /**
   * What users and tools said, the beginning of the answer if the caller wrote one, and everything else that it can put in
   * front of the model but instructions.
   */
  text: readonly string[]
  /** What is said in the last message of the user, or in the last results of tools. */
  lastMessage: readonly string[]
  /** The instructions at the beginning. */
  system: readonly string[]
  /** What the model said before, as the caller tells it. No rule sees it. */
  history: readonly string[]
  /** Of the last message. Results of tools are messages of the user, as in a `Turn`. */
  role: TurnMessage['role']
  /** The addresses of images; those that were sent along are `data:` addresses. */
  images: readonly string[]
  /** Whether there is content that neither rules nor scorers can read: a file, or binary data. */
  hasUnreadable: boolean
}

type Found = { said: string[]; history: string[]; images: string[]; hasUnreadable: boolean }

/** Reads what a request says. */
export function readRequestTexts({ system, messages, tools, outputFormat }: Turn): RequestTexts {
  const text: string[] = []
  const history: string[] = []
  let lastMessage: string[] = []
  const images: string[] = []
  let hasUnreadable = false
  for (const [index, { role, parts }] of messages.entries()) {
    const found: Found = { said: [], history: [], images, hasUnreadable: false }
    // The model goes on where the last message ends, so its caller puts those words into the answer.
    const isHistory = role === 'assistant' && index < messages.length - 1
    for (const part of parts) addPart(found, part, isHistory)
    for (const said of found.said) text.push(said)
    for (const said of found.history) history.push(said)
    if (role === 'user') lastMessage = found.said
    hasUnreadable ||= found.hasUnreadable
  }
  // Tools and schemas are judged too: a caller can write to the model there as well as in a message.
  for (const tool of tools) text.push(toolText(tool))
  if (outputFormat?.type === 'json_schema') {
    text.push(linesOf(outputFormat.name, ...stringsIn(outputFormat.schema)))
  }
  const isSaid = (one: string) => one !== ''
  return {
    text: text.filter(isSaid),
    lastMessage: lastMessage.filter(isSaid),
    system: system.filter(isSaid),
    history: history.filter(isSaid),
    role: messages.at(-1)?.role ?? 'user',
    images,
    hasUnreadable,
  }
}

function addPart(found: Found, part: Part, isHistory: boolean) {
  const target = isHistory ? found.history : found.said
  switch (part.type) {
    case 'text':
    case 'refusal':
    case 'reasoning':
      target.push(part.text)
      return
    case 'tool_call':
      target.push(part.name)
      addArguments(target, part.arguments)
      return
    case 'tool_result':
      // What a tool returned is judged in a message of any role.
      for (const inner of part.parts) addPart(found, inner, false)
      return
    case 'foreign':
      addForeign(found, part.text)
      return
    case 'image':
      addImage(found, target, part.source)
      return
    case 'document':
      addDocument(found, target, part)
  }
}

/** Each string is a text of its own, as it is in an answer. */
function addArguments(target: string[], json: string) {
  const texts: string[] = []
  new JsonTexts().feed(json, {
    add(number, text) {
      texts[number] = (texts[number] ?? '') + text
    },
    end: () => undefined,
  })
  for (const text of texts) if (text) target.push(text)
}

/**
 * A foreign part is judged in a message of any role: tools and items that belong to the whole call stand in whichever
 * message comes first, or before them.
 */
function addForeign(found: Found, json: string) {
  const onText = (text: string) => void found.said.push(text)
  const onUnreadable = () => {
    found.hasUnreadable = true
  }
  visitStrings('', JSON.parse(json), { onText, onUnreadable, onName: onText })
}

function addDocument(found: Found, target: string[], { source, title }: DocumentPart) {
  if (title !== null) target.push(title)
  if (source.type === 'text') target.push(source.text)
  else if (source.type === 'base64' && source.mediaType.startsWith('text/')) {
    target.push(Buffer.from(source.data, 'base64').toString())
  } else addSource(found, target, source)
}

/** An address is text as well: a caller can write there. */
function addImage(found: Found, target: string[], source: Source) {
  if (source.type === 'base64') {
    found.images.push(`data:${source.mediaType};base64,${source.data}`)
  } else if (source.type === 'url') {
    found.images.push(source.url)
    target.push(source.url)
  } else addSource(found, target, source)
}

function addSource(found: Found, target: string[], source: Source) {
  found.hasUnreadable = true
  if (source.type === 'url') target.push(source.url)
}

/** A tool is one text with a string per line: an agent sends dozens of them, with hundreds of short strings. */
const toolText = ({ name, description, parameters }: Tool): string =>
  linesOf(name, description ?? '', ...stringsIn(parameters))

const linesOf = (...strings: string[]): string =>
  strings.filter((string) => string !== '').join('\n')

/** The strings of a schema, which include the names of its members: callers choose them. */
function stringsIn(schema: unknown): string[] {
  const strings: string[] = []
  addArguments(strings, JSON.stringify(schema))
  return strings
}
