import type { Json, OutFrame } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import { asObject, asText, listOf, objectOf, readToolInput } from '#formats/json-values.ts'

import { completeUsage } from './message-usage.ts'

/** A block that is being put together; `json` collects the fragments of a tool's input. */
type OpenBlock = { block: Json; json: string }

/** All frames of a stream as one message. Unknown members keep their place. */
export function foldMessageStream(frames: readonly OutFrame[]): Json {
  let message: Json | null = null
  let usage: Json = {}
  const blocks = new Map<unknown, OpenBlock>()

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
        blocks.set(data['index'], addDelta(blocks.get(data['index']), objectOf(data['delta'])))
        break
      case 'message_delta': {
        const { type: _, delta, usage: later, ...members } = data
        message = { ...objectOf(message), ...objectOf(delta), ...members }
        // The last one was written when the bill was settled, so it replaces every earlier one.
        usage = asObject(later) ?? usage
        break
      }
      default:
    }
  }
  if (!message) throw new BrokenAnswer('The answer has no beginning.')
  const isCut = message['stop_reason'] === 'max_tokens'
  const content = [...blocks.values()].map((block) => completeBlock(block, isCut))
  return { ...message, content, usage: completeUsage(usage) }
}

function addDelta(open: OpenBlock | undefined, delta: Json): OpenBlock {
  if (!open) throw new BrokenAnswer('A block goes on that was never started.')
  const { block, json } = open
  const { type, ...members } = delta
  switch (type) {
    case 'input_json_delta':
      return { block, json: join(json, delta['partial_json']) }
    case 'text_delta':
      return { block: { ...block, text: join(block['text'], delta['text']) }, json }
    case 'thinking_delta':
      return { block: { ...block, thinking: join(block['thinking'], delta['thinking']) }, json }
    case 'citations_delta':
      return {
        block: { ...block, citations: [...listOf(block['citations']), delta['citation']] },
        json,
      }
    default:
      // A signature, or a kind of delta that is newer than this code: its members become the block's.
      return { block: { ...block, ...members }, json }
  }
}

const join = (start: unknown, more: unknown) => (asText(start) ?? '') + (asText(more) ?? '')

function completeBlock({ block, json }: OpenBlock, isCut: boolean): Json {
  if (block['type'] === 'text') return withoutNullCitations(block)
  if (json === '') return block
  return { ...block, input: parseInput(json, isCut) }
}

/** A block without `citations` where there are none: some clients accept a list there, or nothing. */
export function withoutNullCitations(block: Json): Json {
  if (block['citations'] !== null) return block
  const { citations: _, ...others } = block
  return others
}

/** An answer that ran out of tokens inside a tool's input has an empty one. */
function parseInput(json: string, isCut: boolean): Json {
  try {
    const input = readToolInput(json)
    if (input) return input
  } catch {
    // Reported below, like JSON that is no object.
  }
  if (isCut) return {}
  throw new BrokenAnswer('The input of a tool call is not a JSON object.')
}
