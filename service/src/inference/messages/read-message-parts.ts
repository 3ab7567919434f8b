import type { MessageParam } from '@gatehouse/contract/message'
import type { ContentBlock } from '@gatehouse/contract/message-content'

import { foreignMembers, foreignPart } from '#inference/foreign-part.ts'
import { unpackOpaque } from '#inference/opaque.ts'
import type {
  ContentPart,
  DocumentPart,
  ForeignPart,
  ImagePart,
  Opaque,
  Part,
  Source,
  TextPart,
  TurnMessage,
} from '#inference/turn.ts'

type Block<Type extends ContentBlock['type']> = Extract<ContentBlock, { type: Type }>

/** A conversation; messages in which nothing remains to be said are left out. */
export function readMessages(messages: readonly MessageParam[]): TurnMessage[] {
  return messages
    .map(({ role, content }) => ({ role, parts: readContent(content) }))
    .filter(({ parts }) => parts.length > 0)
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
      return [call, ...othersOf(block)]
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

/** By the type of a block: members that are read, or that only say how it is to be handled. */
const knownMembers: Record<string, readonly string[]> = {
  text: ['text'],
  image: ['source'],
  document: ['source', 'title'],
  search_result: ['source', 'title', 'content'],
  tool_use: ['id', 'name', 'input', 'caller'],
  tool_result: ['tool_use_id', 'content', 'is_error'],
}

/**
 * What people could read too, and what else the block says. What a provider did by itself, or only it
 * understands, is foreign as a whole.
 */
function readReadable(block: { type: string }): (ContentPart | ForeignPart)[] {
  switch (block.type) {
    case 'text':
      return [...readText((block as Block<'text'>).text), ...othersOf(block)]
    case 'image':
      return [readImage(block as Block<'image'>), ...othersOf(block)]
    case 'document':
      return [...readDocument(block as Block<'document'>), ...othersOf(block)]
    case 'search_result':
      return [...readSearchResult(block as Block<'search_result'>), ...othersOf(block)]
    default:
      return [foreignPart(block)]
  }
}

/** Of a text, citations are what it cites; elsewhere they are a switch. */
function othersOf(block: { type: string; citations?: unknown }): ForeignPart[] {
  const { citations, ...others } = block
  const known = new Set(['type', 'cache_control', ...(knownMembers[block.type] ?? [])])
  return foreignMembers(Array.isArray(citations) ? block : others, known)
}

/** What is foreign in a result has no place inside it and stands behind it. */
function readToolResult(block: Block<'tool_result'>): Part[] {
  const { tool_use_id: callId, content = [], is_error: isError } = block
  const read = typeof content === 'string' ? readText(content) : content.flatMap(readReadable)
  const parts = read.filter((part) => part.type !== 'foreign')
  const foreign = read.filter((part) => part.type === 'foreign')
  const result: Part = { type: 'tool_result', callId, parts, isError: isError === true }
  return [result, ...foreign, ...othersOf(block)]
}

const readThinking = (text: string, opaque: Opaque | null): Part[] =>
  text === '' && !opaque ? [] : [{ type: 'reasoning', text, opaque }]

/** What another format's model left with this caller, or this format's own. */
function readOpaque(data: string, kind: Opaque['kind']): Opaque | null {
  if (data === '') return null
  return unpackOpaque(data) ?? { origin: 'messages', kind, data, id: null }
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

/** The pictures of a document made of blocks follow its text. */
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
