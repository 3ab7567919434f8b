import type { Json, OutFrame } from '#inference/answer.ts'
import { BrokenAnswer } from '#inference/broken-answer.ts'
import { asObject, asText, listOf, objectOf } from '#inference/untyped.ts'

import { completeUsage } from './message-usage.ts'
import { readToolInput } from './tool-input.ts'

/** A block as it grows; `json` collects the fragments of a tool's input. */
type Growing = { block: Json; json: string }

/** All frames of a stream as one message. Members that we do not know are kept where they stood. */
export function foldMessageStream(frames: readonly OutFrame[]): Json {
  let message: Json | null = null
  let usage: Json = {}
  const blocks = new Map<unknown, Growing>()

  for (const { data, event } of frames) {
    if (data === '[DONE]') continue
    switch (asText(data['type']) ?? event) {
      case 'message_start':
        message = objectOf(data['message'])
        usage = objectOf(message['usage'])
        break
      case 'content_block_start':
        blocks.set(data['index'], { block: objectOf(data['content_block']), json: '' })
        break
      case 'content_block_delta':
        blocks.set(data['index'], grown(blocks.get(data['index']), objectOf(data['delta'])))
        break
      case 'message_delta': {
        const { type: _, delta, usage: later, ...members } = data
        message = { ...objectOf(message), ...objectOf(delta), ...members }
        // The last one was written when the bill was settled: nothing said before adds to it.
        usage = asObject(later) ?? usage
        break
      }
      default:
    }
  }
  if (!message) throw new BrokenAnswer('The answer has no beginning.')
  const isCut = message['stop_reason'] === 'max_tokens'
  const content = [...blocks.values()].map((each) => whole(each, isCut))
  return { ...message, content, usage: completeUsage(usage) }
}

function grown(growing: Growing | undefined, delta: Json): Growing {
  if (!growing) throw new BrokenAnswer('A block goes on that was never started.')
  const { block, json } = growing
  const { type, ...members } = delta
  switch (type) {
    case 'input_json_delta':
      return { block, json: joined(json, delta['partial_json']) }
    case 'text_delta':
      return { block: { ...block, text: joined(block['text'], delta['text']) }, json }
    case 'thinking_delta':
      return { block: { ...block, thinking: joined(block['thinking'], delta['thinking']) }, json }
    case 'citations_delta':
      return { block: { ...block, citations: cited(block['citations'], delta['citation']) }, json }
    default:
      // A signature, or something newer: it belongs to the block as it is.
      return { block: { ...block, ...members }, json }
  }
}

const joined = (start: unknown, more: unknown) => (asText(start) ?? '') + (asText(more) ?? '')

const cited = (citations: unknown, citation: unknown): unknown[] => [...listOf(citations), citation]

function whole({ block, json }: Growing, isCut: boolean): Json {
  if (block['type'] === 'text') return { citations: null, ...block }
  if (json === '') return block
  return { ...block, input: parsed(json, isCut) }
}

/** Where the answer ran out of tokens inside a tool's input, there is none. */
function parsed(json: string, isCut: boolean): Json {
  try {
    const input = readToolInput(json)
    if (input) return input
  } catch {
    // Said below, for both.
  }
  if (isCut) return {}
  throw new BrokenAnswer('The input of a tool call is not a JSON object.')
}
