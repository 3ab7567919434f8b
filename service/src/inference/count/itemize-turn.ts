import type { DocumentPart, ImagePart, Part, Turn } from '#formats/turn.ts'

import { readImageSize } from './image-size.ts'

/** What is counted in a turn: texts, and a number of tokens for everything else. */
export type Items = {
  texts: string[]
  otherTokens: number
  /** True if there are parts whose tokens can only be estimated. */
  isEstimate: boolean
}

const tokensPerMessage = 3
const tokensPerBlock = 1
const tokensPerTool = 8
const pixelsPerToken = 750
const tokensOfUnknownImage = 1600
/** A few pages. Documents that are not text are not read. */
const tokensOfUnknownDocument = 3000
/** Encrypted reasoning is base64: 4 characters are 3 bytes, and 4 bytes of prose are about a token. */
const encryptedCharactersPerToken = 16 / 3

/** Lists the countable items of a request. */
export function itemizeTurn(turn: Turn): Items {
  const items: Items = { texts: [...turn.system], otherTokens: 0, isEstimate: false }
  items.otherTokens += turn.system.length * tokensPerBlock
  for (const { parts } of turn.messages) {
    items.otherTokens += tokensPerMessage
    for (const part of parts) addPart(items, part)
  }
  for (const { name, description, parameters } of turn.tools) {
    items.otherTokens += tokensPerTool
    items.texts.push(JSON.stringify({ name, description: description ?? undefined, parameters }))
  }
  if (turn.outputFormat?.type === 'json_schema') {
    items.texts.push(JSON.stringify(turn.outputFormat.schema))
  }
  return items
}

function addPart(items: Items, part: Part) {
  items.otherTokens += tokensPerBlock
  switch (part.type) {
    case 'text':
    case 'refusal':
    case 'foreign':
      items.texts.push(part.text)
      return
    case 'tool_call':
      items.texts.push(part.name, part.arguments)
      return
    case 'tool_result':
      for (const inner of part.parts) addPart(items, inner)
      return
    case 'reasoning':
      addReasoning(items, part)
      return
    case 'image':
      addImage(items, part)
      return
    case 'document':
      addDocument(items, part)
  }
}

/** A model reads encrypted reasoning, but not the signature of visible reasoning. */
function addReasoning(items: Items, { text, opaque }: Extract<Part, { type: 'reasoning' }>) {
  if (text !== '') items.texts.push(text)
  else if (opaque && opaque.kind !== 'signature') {
    items.otherTokens += Math.ceil(opaque.data.length / encryptedCharactersPerToken)
    items.isEstimate = true
  }
}

function addImage(items: Items, { source }: ImagePart) {
  const size = source.type === 'base64' ? readImageSize(source.data) : null
  items.otherTokens += size
    ? Math.ceil((size.width * size.height) / pixelsPerToken)
    : tokensOfUnknownImage
  items.isEstimate = true
}

function addDocument(items: Items, { source, title }: DocumentPart) {
  if (title !== null) items.texts.push(title)
  if (source.type === 'text') items.texts.push(source.text)
  else if (source.type === 'base64' && source.mediaType.startsWith('text/')) {
    items.texts.push(Buffer.from(source.data, 'base64').toString())
  } else {
    items.otherTokens += tokensOfUnknownDocument
    items.isEstimate = true
  }
}
