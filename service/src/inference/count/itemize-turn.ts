import type { DocumentPart, ImagePart, Part, Source, Turn } from '#formats/turn.ts'

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
/** Documents that are not text are not read. For a mere count they stand for a few pages. */
const tokensOfUnknownDocument = 3000
/** Encrypted reasoning is base64: 4 characters are 3 bytes, and 4 bytes of prose are about a token. */
const encryptedCharactersPerToken = 16 / 3

/** Lists the countable items of a request. */
export function itemizeTurn(turn: Turn, imageTokensMax: number): Items {
  const items: Items = { texts: [...turn.system], otherTokens: 0, isEstimate: false }
  items.otherTokens += turn.system.length * tokensPerBlock
  for (const { parts } of turn.messages) {
    items.otherTokens += tokensPerMessage
    for (const part of parts) addPart(items, part, imageTokensMax)
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

function addPart(items: Items, part: Part, imageTokensMax: number) {
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
      for (const inner of part.parts) addPart(items, inner, imageTokensMax)
      return
    case 'reasoning':
      addReasoning(items, part)
      return
    case 'image':
      addImage(items, part, imageTokensMax)
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

function addImage(items: Items, { source }: ImagePart, imageTokensMax: number) {
  const size = source.type === 'base64' ? readImageSize(source.data) : null
  const tokens = size ? Math.ceil((size.width * size.height) / pixelsPerToken) : imageTokensMax
  items.otherTokens += Math.min(tokens, imageTokensMax)
  items.isEstimate = true
}

function addDocument(items: Items, { source, title }: DocumentPart) {
  if (title !== null) items.texts.push(title)
  if (source.type === 'text') items.texts.push(source.text)
  else if (isEncodedText(source)) items.texts.push(Buffer.from(source.data, 'base64').toString())
  else {
    items.otherTokens += tokensOfUnknownDocument
    items.isEstimate = true
  }
}

const isEncodedText = (
  source: DocumentPart['source'],
): source is Extract<Source, { type: 'base64' }> =>
  source.type === 'base64' && source.mediaType.startsWith('text/')

/** Whether a turn has a document or a file whose size in tokens cannot be known: it may fill the context. */
export function hasUnsizedPart({ messages }: Turn): boolean {
  const isUnsized = (part: Part): boolean => {
    if (part.type === 'tool_result') return part.parts.some(isUnsized)
    if (part.type !== 'document') return false
    return part.source.type !== 'text' && !isEncodedText(part.source)
  }
  return messages.some(({ parts }) => parts.some(isUnsized))
}
