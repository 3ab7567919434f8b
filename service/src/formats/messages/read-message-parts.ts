import type { MessageParam } from '@gatehouse/contract/message'
import type { ContentBlock } from '@gatehouse/contract/message-content'

import { foreignMembers, foreignPart } from '#formats/foreign-part.ts'
import { unpackOpaqueState } from '#formats/opaque-state.ts'
import type {
  ContentPart,
  DocumentPart,
  ForeignPart,
  ImagePart,
  OpaqueState,
  Part,
  Source,
  TextPart,
  TurnMessage,
} from '#formats/turn.ts'

type Block<Type extends ContentBlock['type']> = Extract<ContentBlock, { type: Type }>

/** `foreign` holds the unknown members of instructions. */
type Conversation = { system: string[]; messages: TurnMessage[]; foreign: ForeignPart[] }

/**
 * A conversation, without the messages that have no parts. Instructions at its beginning belong to the system prompt; later
 * ones refer to the messages before them, so they stay in their place.
 */
export function readMessages(messages: readonly MessageParam[]): Conversation {
  const conversation: Conversation = { system: [], messages: [], foreign: [] }
  let isBeginning = true
  for (const { role, content } of messages) {
    const parts = readContent(content)
    // Also a message without parts ends the beginning, as it does for redaction.
    isBeginning &&= role === 'system'
    if (role === 'system') addInstructions(conversation, parts, isBeginning)
    else if (parts.length > 0) conversation.messages.push({ role, parts })
  }
  return conversation
}

function addInstructions(
  { system, messages, foreign }: Conversation,
  parts: readonly Part[],
  isBeginning: boolean,
) {
  const texts = parts.filter((part) => part.type === 'text')
  for (const part of parts) if (part.type === 'foreign') foreign.push(part)
  if (isBeginning) for (const { text } of texts) system.push(text)
  else if (texts.length > 0) messages.push({ role: 'system', parts: texts })
}

function readContent(content: MessageParam['content']): Part[] {
  if (typeof content === 'string') return readText(content)
  return content.flatMap(readBlock)
}

const readText = (text: string): TextPart[] => (text === '' ? [] : [{ type: 'text', text }])

function readBlock(block: ContentBlock): Part[] {
  switch (block.type) {
    case 'tool_use': {
      const { id, name, input } = block
      const call: Part = { type: 'tool_call', id, name, arguments: JSON.stringify(input) }
      return [call, ...readOthers(block)]
    }
    case 'tool_result':
      return readToolResult(block)
    case 'thinking':
      return readThinking(block.thinking, readOpaque(block.signature ?? '', 'signature'))
    case 'redacted_thinking':
      return readThinking('', readOpaque(block.data, 'redacted'))
    default:
      return readReadable(block)
  }
}

/** By the type of a block: members that are read, or that are settings and hold no text for the model. */
const ownMembers: Record<string, readonly string[]> = {
  text: ['text'],
  image: ['source'],
  document: ['source', 'title'],
  search_result: ['source', 'title', 'content'],
  tool_use: ['id', 'name', 'input', 'caller'],
  tool_result: ['tool_use_id', 'content', 'is_error'],
}
/** Sets are made once: a conversation may have thousands of blocks. */
const knownMembersWith = (common: readonly string[]) =>
  new Map(Object.entries(ownMembers).map(([type, own]) => [type, new Set([...common, ...own])]))
const knownMembers = knownMembersWith(['type', 'cache_control'])
const knownMembersAndCitations = knownMembersWith(['type', 'cache_control', 'citations'])
const noMembers: ReadonlySet<string> = new Set()

/**
 * A block that every model could read, and its unknown members as foreign parts. A block that only the provider
 * understands is foreign as a whole.
 */
function readReadable(block: { type: string }): (ContentPart | ForeignPart)[] {
  switch (block.type) {
    case 'text':
      return [...readText((block as Block<'text'>).text), ...readOthers(block)]
    case 'image':
      return [readImage(block as Block<'image'>), ...readOthers(block)]
    case 'document':
      return [...readDocument(block as Block<'document'>), ...readOthers(block)]
    case 'search_result':
      return [...readSearchResult(block as Block<'search_result'>), ...readOthers(block)]
    default:
      return [foreignPart(block)]
  }
}

/** The unknown members. In a text block `citations` is a list of sources; in others it is a setting. */
function readOthers(block: { type: string; citations?: unknown }): ForeignPart[] {
  const known = Array.isArray(block.citations) ? knownMembers : knownMembersAndCitations
  return foreignMembers(block, known.get(block.type) ?? noMembers)
}

/** A tool result has no place for foreign parts, so they follow it. */
function readToolResult(block: Block<'tool_result'>): Part[] {
  const { tool_use_id: callId, content = [], is_error: isError } = block
  const read = typeof content === 'string' ? readText(content) : content.flatMap(readReadable)
  const parts = read.filter((part) => part.type !== 'foreign')
  const foreign = read.filter((part) => part.type === 'foreign')
  const result: Part = { type: 'tool_result', callId, parts, isError: isError === true }
  return [result, ...foreign, ...readOthers(block)]
}

const readThinking = (text: string, opaque: OpaqueState | null): Part[] =>
  text === '' && !opaque ? [] : [{ type: 'reasoning', text, opaque }]

/** Opaque state of this format, or packed state of another. */
function readOpaque(data: string, kind: OpaqueState['kind']): OpaqueState | null {
  if (data === '') return null
  return unpackOpaqueState(data) ?? { origin: 'messages', kind, data, id: null }
}

const readImage = ({ source }: Block<'image'>): ImagePart => ({
  type: 'image',
  source: readSource(source),
  detail: null,
})

function readSource(source: Block<'image'>['source']): Source {
  if (source.type === 'base64') {
    return { type: 'base64', mediaType: source.media_type, data: source.data }
  }
  if (source.type === 'url') return { type: 'url', url: source.url }
  return { type: 'file', id: source.file_id }
}

/** The images of a document made of blocks follow its text. */
function readDocument({ source, title = null }: Block<'document'>): ContentPart[] {
  if (source.type === 'text') return [textDocument(source.data, title)]
  if (source.type !== 'content') return [{ type: 'document', source: readSource(source), title }]
  if (typeof source.content === 'string') return [textDocument(source.content, title)]
  const texts = source.content.flatMap((block) => (block.type === 'text' ? [block.text] : []))
  const images = source.content.flatMap((block) => (block.type === 'image' ? [block] : []))
  return [textDocument(texts.join('\n'), title), ...images.map(readImage)]
}

const textDocument = (text: string, title: string | null): DocumentPart => ({
  type: 'document',
  source: { type: 'text', text },
  title,
})

function readSearchResult({ title, source, content }: Block<'search_result'>): TextPart[] {
  const texts = content.map(({ text }) => text)
  return readText([title, source, ...texts].filter((text) => text !== '').join('\n'))
}
