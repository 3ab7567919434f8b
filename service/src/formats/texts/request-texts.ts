import { isUtf8 } from 'node:buffer'

import type { DocumentPart, Part, Source, Tool, Turn, TurnMessage } from '#formats/turn.ts'
import { joinMessages, joinParts, type Passage } from '#text/passage.ts'

import { JsonTexts } from './json-texts.ts'
import { visitStrings } from './visit-strings.ts'

/** Where in a request something was said. */
type SaidIn = 'system' | 'user' | 'tool_result' | 'document' | 'tools' | 'prefill'

/** Something that the caller sends; `message` is its place in the turn, null outside of messages. */
export type Said = Passage & { readonly part: SaidIn; readonly message: number | null }

/** What the model said before, as the caller tells it: messages of the assistant in a row. */
export type EarlierAnswer = {
  readonly message: number
  /** Its text, its visible reasoning, and the arguments of its calls. */
  readonly said: readonly Passage[]
  /** What it answers: the message of the user before it. */
  readonly question: readonly Passage[]
}

/** The texts of a request, as rules see them. */
export type RequestTexts = {
  /**
   * Everything the caller sends that is not an earlier answer: instructions, what users and tools said, documents, tools, and
   * the beginning of the answer if the caller wrote one.
   */
  text: readonly Said[]
  /** What users and tools said. */
  userText: readonly Said[]
  /** What is said in the last message of the user, or in the last results of tools. */
  lastMessage: readonly Said[]
  system: readonly Said[]
  tools: readonly Said[]
  history: readonly EarlierAnswer[]
  /** The beginning of the answer, which the model goes on with. */
  prefill: string
  /** Of the last message. Results of tools are messages of the user, as in a `Turn`. */
  role: TurnMessage['role']
  /** The addresses of images; those that were sent along are `data:` addresses. */
  images: readonly string[]
  /** Whether there is content that neither rules nor scorers can read: a file, or binary data. */
  hasUnreadable: boolean
}

/** Reads what a request says. */
export function readRequestTexts(turn: Turn): RequestTexts {
  const found: Found = { said: [], history: [], images: [], hasUnreadable: false }
  const system = saidIn('system', null, turn.system)
  let lastMessage: readonly Said[] = []
  let prefill = ''
  for (const run of runsOf(turn.messages)) {
    if (run.role === 'user') {
      lastMessage = addUserRun(found, run)
      continue
    }
    const answer = readAssistantRun(found, run)
    const { texts } = answer
    // The model goes on where the last message ends, so its caller puts those words into the answer.
    if (run.isLast) {
      const { first } = run
      addAll(
        found.said,
        texts.map((each) => ({ ...each, part: 'prefill' as const, message: first })),
      )
      prefill = answer.prefill
    } else {
      found.history.push({ message: run.first, said: texts, question: lastMessage })
    }
  }
  const tools = toolTexts(turn).flatMap((text) => saidIn('tools', null, [text]))
  const others = turn.other.flatMap((text) => saidIn('user', null, [text]))
  return {
    text: [...system, ...found.said, ...tools, ...others],
    userText: found.said.filter(({ part }) => part !== 'prefill'),
    lastMessage,
    system,
    tools,
    history: found.history,
    prefill,
    role: turn.messages.at(-1)?.role ?? 'user',
    images: found.images,
    hasUnreadable: found.hasUnreadable,
  }
}

type Found = {
  said: Said[]
  history: EarlierAnswer[]
  images: string[]
  hasUnreadable: boolean
}

/** Messages of one role in a row: their reader sees one text. */
type Run = {
  role: TurnMessage['role']
  messages: TurnMessage[]
  /** The place of its first message in the turn. */
  first: number
  isLast: boolean
}

/**
 * A message that says nothing ends no run: upstreams of other formats do not get it, and what stands around it is joined there.
 * So is one of the assistant that only has reasoning; that is judged apart.
 */
function runsOf(messages: readonly TurnMessage[]): Run[] {
  const runs: Run[] = []
  let last: Run | undefined
  for (const [first, message] of messages.entries()) {
    const { role } = message
    const isOwn = last?.role !== role
    if (!isOwn) last?.messages.push(message)
    else if (isSilent(message)) runs.push({ role, messages: [message], first, isLast: false })
    else {
      last = { role, messages: [message], first, isLast: false }
      runs.push(last)
    }
  }
  if (last) last.isLast = true
  return runs
}

const isSilent = ({ role, parts }: TurnMessage) =>
  parts.every(
    (part) =>
      (part.type === 'text' && part.text === '') ||
      (part.type === 'reasoning' && role === 'assistant'),
  )

const saidIn = (part: SaidIn, message: number | null, parts: readonly string[]): Said[] =>
  toSaid(part, message, joinParts(parts))

/** None where nothing is said. */
const toSaid = (part: SaidIn, message: number | null, passage: Passage): Said[] =>
  passage.parts.length === 0 ? [] : [{ ...passage, part, message }]

/** Not as arguments: there may be more than a function takes. */
function addAll<Item>(list: Item[], added: readonly Item[]) {
  for (const item of added) list.push(item)
}

/** Adds what is said in messages of the user; returns what the last of them says. */
function addUserRun(found: Found, { messages, first }: Run): readonly Said[] {
  const texts: string[][] = []
  let [ownTexts, others]: [string[], Said[]] = [[], []]
  for (const [number, { parts }] of messages.entries()) {
    ownTexts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
    others = parts.flatMap((part) => readOther(found, part, first + number))
    texts.push(ownTexts)
    addAll(found.said, others)
  }
  const together = toSaid('user', first, joinMessages(texts))
  addAll(found.said, together)
  // The same object where it is the same text, so that whoever has read it knows it again.
  const own =
    messages.length === 1 ? together : saidIn('user', first + messages.length - 1, ownTexts)
  return [...own, ...others]
}

/** What a part says that is no text of its message, in a message of any role. */
function readOther(found: Found, part: Part, message: number): Said[] {
  const say = (where: SaidIn, texts: readonly string[]) => saidIn(where, message, texts)
  switch (part.type) {
    case 'tool_result':
      return readResult(found, part.parts, message)
    case 'document':
      return readDocument(found, part).flatMap((text) => say('document', [text]))
    case 'image':
      return readImage(found, part.source).flatMap((text) => say('user', [text]))
    case 'foreign':
      return readForeign(found, part.text).flatMap((text) => say('user', [text]))
    case 'tool_call':
      return [part.name, ...stringsOf(part.arguments)].flatMap((text) => say('user', [text]))
    case 'refusal':
    case 'reasoning':
      return say('user', [part.text])
    case 'text':
      return []
  }
}

/** What a tool returned is judged in a message of any role. */
function readResult(found: Found, parts: readonly Part[], message: number): Said[] {
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
  return [
    ...saidIn('tool_result', message, texts),
    ...parts.flatMap((part) => readOther(found, part, message)),
  ]
}

/** The texts of an answer. `prefill` is what its reader sees of it as one text. */
type ReadAnswer = { texts: Passage[]; prefill: string }

function readAssistantRun(found: Found, { messages, first }: Run): ReadAnswer {
  const prose: string[][] = []
  const reasoning: string[] = []
  const others: Passage[] = []
  for (const [number, { parts }] of messages.entries()) {
    prose.push(parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])))
    for (const part of parts) {
      if (part.type === 'reasoning') reasoning.push(part.text)
      else if (part.type === 'refusal') others.push(joinParts([part.text]))
      else if (part.type === 'tool_call') addAll(others, callTexts(part))
      // What tools and providers add is no answer of the model, whoever is said to have said it.
      else addAll(found.said, readOther(found, part, first + number))
    }
  }
  const texts = [joinMessages(prose), joinParts(reasoning), ...others]
  return { texts: texts.filter(({ parts }) => parts.length > 0), prefill: prose.flat().join('') }
}

/** The name of a call and the strings of its arguments: each for itself, and all of them joined by spaces. */
function callTexts({ name, arguments: json }: Extract<Part, { type: 'tool_call' }>): Passage[] {
  const strings = stringsOf(json)
  const each = [name, ...strings].map((text) => joinParts([text]))
  return strings.length > 1
    ? [...each, { ...joinParts([strings.join(' ')]), isRepeated: true }]
    : each
}

/** The strings in JSON text, as in an answer: names of members, values, and also numbers. */
function stringsOf(json: string): string[] {
  const texts: string[] = []
  new JsonTexts().feed(json, {
    add(number, text) {
      texts[number] = (texts[number] ?? '') + text
    },
    end: () => undefined,
  })
  return texts.filter((text) => text)
}

/**
 * A foreign part is judged in a message of any role: tools and items that belong to the whole call stand in whichever
 * message comes first, or before them.
 */
function readForeign(found: Found, json: string): string[] {
  const texts: string[] = []
  const onText = (text: string) => void texts.push(text)
  const onUnreadable = () => {
    found.hasUnreadable = true
  }
  visitStrings('', JSON.parse(json), { onText, onUnreadable, onName: onText })
  return texts
}

/** A document whose bytes are text is text, whatever its media type says. */
function readDocument(found: Found, { source, title }: DocumentPart): string[] {
  const name = title === null ? [] : [title]
  if (source.type === 'text') return [...name, source.text]
  if (source.type === 'base64') {
    const bytes = Buffer.from(source.data, 'base64')
    if (isUtf8(bytes)) return [...name, bytes.toString()]
  }
  return [...name, ...readSource(found, source)]
}

/** An address is text as well: a caller can write there. */
function readImage(found: Found, source: Source): string[] {
  if (source.type === 'file') return readSource(found, source)
  if (source.type === 'url') {
    found.images.push(source.url)
    return [source.url]
  }
  found.images.push(`data:${source.mediaType};base64,${source.data}`)
  return []
}

function readSource(found: Found, source: Source): string[] {
  found.hasUnreadable = true
  return source.type === 'url' ? [source.url] : []
}

/**
 * A tool is one text with a string per line: an agent sends dozens of them, with hundreds of short strings. Schemas are judged
 * too: a caller can write to the model there as well as in a message.
 */
function toolTexts({ tools, outputFormat }: Turn): string[] {
  const texts = tools.map(({ name, description, parameters }: Tool) =>
    linesOf(name, description ?? '', ...stringsOf(JSON.stringify(parameters))),
  )
  if (outputFormat?.type !== 'json_schema') return texts
  const { name, schema } = outputFormat
  return [...texts, linesOf(name, ...stringsOf(JSON.stringify(schema)))]
}

const linesOf = (...strings: string[]): string =>
  strings.filter((string) => string !== '').join('\n')
