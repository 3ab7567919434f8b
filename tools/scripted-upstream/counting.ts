import type { IncomingHttpHeaders } from 'node:http'

import { listOf, recordOf, textOf, type Json } from './json.ts'
import { tokenPieces } from './text-pieces.ts'

const modelIds = ['scripted-small', 'scripted-large', 'claude-scripted', 'gpt-scripted']

/** A request with Anthropic's version header gets the list in Anthropic's form. */
export function listModels(headers: IncomingHttpHeaders): Json {
  if (headers['anthropic-version'] === undefined) {
    return { object: 'list', data: modelIds.map(describeModel) }
  }
  const data = modelIds.map((id) => ({
    type: 'model',
    id,
    display_name: id,
    created_at: '2026-01-01T00:00:00Z',
  }))
  return { data, has_more: false, first_id: modelIds[0], last_id: modelIds.at(-1) }
}

export function describeModel(id: string): Json {
  return { id, object: 'model', created: 1_767_225_600, owned_by: 'scripted-upstream' }
}

export const isModel = (id: string) => modelIds.includes(id)

/** llama.cpp's API takes `content`, vLLM's `prompt` or `messages`; each has its own form of answer. */
export function tokenize(body: Json): Json {
  const { content, with_pieces } = body
  if (typeof content === 'string') {
    const pieces = tokenPieces(content)
    return { tokens: pieces.map((piece, id) => (with_pieces === true ? { id, piece } : id)) }
  }
  const prompt = textOf(body['prompt']) ?? String(applyTemplate(body)['prompt'])
  const tokens = tokenPieces(prompt).map((_, id) => id)
  return { count: tokens.length, max_model_len: 131_072, tokens, token_strs: null }
}

export function applyTemplate(body: Json): Json {
  const turns = listOf(body['messages']).map((message) => {
    const { role, content } = recordOf(message)
    const parts = listOf(content).map((part) => textOf(recordOf(part)['text']) ?? '')
    return `<|im_start|>${String(role)}\n${textOf(content) ?? parts.join('')}<|im_end|>\n`
  })
  return { prompt: `${turns.join('')}<|im_start|>assistant\n` }
}
