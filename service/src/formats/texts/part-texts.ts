import { isUtf8 } from 'node:buffer'

import type { DocumentPart, Part, Source, Turn } from '#formats/turn.ts'
import type { Steps } from '#platform/steps/steps.ts'
import { joinParts, type Passage } from '#text/passage.ts'

import { JsonTexts } from './json-texts.ts'
import { type Said, type SaidIn, saidIn } from './said.ts'
import { visitStrings } from './visit-strings.ts'

/** What a request has besides texts. */
export type Unread = {
  /** The addresses of images. */
  images: string[]
  /** Whether there is content that neither rules nor scorers can read. */
  hasUnreadable: boolean
}

/** What a part says that is no text of its message, in a message of any role. */
export function* readOther(found: Unread, part: Part, message: number): Steps<Said[]> {
  const say = (where: SaidIn, texts: readonly string[]) => saidIn(where, message, texts)
  switch (part.type) {
    case 'tool_result':
      return yield* readResult(found, part.parts, message)
    case 'document':
      return readDocument(found, part).flatMap((text) => say('document', [text]))
    case 'image':
      return readImage(found, part.source).flatMap((text) => say('user', [text]))
    case 'foreign':
      return readForeign(found, part.text).flatMap((text) => say('user', [text]))
    case 'tool_call':
      return [part.name, ...(yield* stringsOf(part.arguments))].flatMap((text) =>
        say('user', [text]),
      )
    case 'refusal':
    case 'reasoning':
      return say('user', [part.text])
    case 'text':
      return []
  }
}

/** What a tool returned is judged in a message of any role. */
function* readResult(found: Unread, parts: readonly Part[], message: number): Steps<Said[]> {
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
  const said = saidIn('tool_result', message, texts)
  for (const part of parts) {
    for (const other of yield* readOther(found, part, message)) said.push(other)
    yield
  }
  return said
}

/** The name of a call and the strings of its arguments: each for itself, and all of them joined by spaces. */
export function* callTexts({
  name,
  arguments: json,
}: Extract<Part, { type: 'tool_call' }>): Steps<Passage[]> {
  const strings = yield* stringsOf(json)
  const each = [name, ...strings].map((text) => joinParts([text]))
  return strings.length > 1
    ? [...each, { ...joinParts([strings.join(' ')]), isRepeated: true }]
    : each
}

/** The strings in JSON text, as in an answer: names of members, values, and also numbers. */
function* stringsOf(json: string): Steps<string[]> {
  const texts: string[] = []
  const reader = new JsonTexts()
  const sink = {
    add(number: number, text: string) {
      texts[number] = (texts[number] ?? '') + text
    },
    end: () => undefined,
  }
  for (let at = 0; at < json.length; at += readAtOnce) {
    reader.feed(json.slice(at, at + readAtOnce), sink)
    yield
  }
  return texts.filter((text) => text)
}

/** Characters of JSON; about a millisecond of work. */
const readAtOnce = 32 * 1024

/**
 * A foreign part is judged in a message of any role: tools and items that belong to the whole call stand in whichever
 * message comes first, or before them.
 */
function readForeign(found: Unread, json: string): string[] {
  const texts: string[] = []
  const onText = (text: string) => void texts.push(text)
  const onUnreadable = () => {
    found.hasUnreadable = true
  }
  visitStrings('', JSON.parse(json), { onText, onUnreadable, onName: onText })
  return texts
}

/** A document whose bytes are text is text, whatever its media type says. */
function readDocument(found: Unread, { source, title }: DocumentPart): string[] {
  const name = title === null ? [] : [title]
  if (source.type === 'text') return [...name, source.text]
  if (source.type === 'base64') {
    const bytes = Buffer.from(source.data, 'base64')
    if (isUtf8(bytes)) return [...name, bytes.toString()]
  }
  return [...name, ...readSource(found, source)]
}

/** An address is text as well: a caller can write there. */
function readImage(found: Unread, source: Source): string[] {
  if (source.type === 'file') return readSource(found, source)
  if (source.type === 'url') {
    found.images.push(source.url)
    return [source.url]
  }
  found.images.push(`data:${source.mediaType};base64,${source.data}`)
  return []
}

function readSource(found: Unread, source: Source): string[] {
  found.hasUnreadable = true
  return source.type === 'url' ? [source.url] : []
}

/**
 * A tool is one text with a string per line: an agent sends dozens of them, with hundreds of short strings. Schemas are judged
 * too: a caller can write to the model there as well as in a message.
 */
export function* toolTexts({ tools, outputFormat }: Turn): Steps<string[]> {
  const texts: string[] = []
  for (const { name, description, parameters } of tools) {
    const strings = yield* stringsOf(JSON.stringify(parameters))
    texts.push(linesOf([name, description ?? '', ...strings]))
  }
  if (outputFormat?.type !== 'json_schema') return texts
  const { name, schema } = outputFormat
  texts.push(linesOf([name, ...(yield* stringsOf(JSON.stringify(schema)))]))
  return texts
}

const linesOf = (strings: readonly string[]): string =>
  strings.filter((string) => string !== '').join('\n')
