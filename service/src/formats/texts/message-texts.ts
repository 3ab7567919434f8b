import type { Json, SourceFrame } from '#formats/answer.ts'
import { asText, isObject, listOf } from '#formats/json-values.ts'

import { createTextReader } from './create-text-reader.ts'
import type { FrameText, TextReader } from './frame-texts.ts'
import type { TextCollector } from './text-collector.ts'
import { proseGroup, reasoningGroup } from './text-views.ts'
import { isText } from './visit-strings.ts'

/** The texts of Messages. A channel is a block: `0/text`, `1/thinking`, `2/input#0`. */
export const createMessageTextReader = (before?: string): TextReader =>
  createTextReader(
    {
      readFrame,
      readPlain: (texts, body) => readMessage(texts, body, (position) => String(position)),
    },
    before,
  )

function readFrame(texts: TextCollector, { event, json }: SourceFrame) {
  const type = asText(json['type']) ?? event
  texts.addMembers(json, (name, value) => {
    switch (`${type}.${name}`) {
      case 'message_start.message':
        return isObject(value) && readMessage(texts, value, () => texts.newChannel())
      case 'content_block_start.content_block':
        // What the block has at its start is continued by its deltas.
        return isObject(value) && readBlock(texts, pathOf(json), value, 'delta')
      case 'content_block_delta.delta':
        return isObject(value) && readDelta(texts, pathOf(json), value)
      case 'message_delta.delta':
        return isObject(value) && readEnd(texts, value)
      case 'message_delta.usage':
        return true
      default:
        return false
    }
  })
  if (type === 'content_block_stop') texts.endAt(pathOf(json))
  if (type === 'message_stop') texts.endAll()
}

const pathOf = ({ index }: Json): string => String(index)

/** A whole message; in a stream it is the start of one, whose content is empty. */
function readMessage(texts: TextCollector, message: Json, pathAt: (position: number) => string) {
  texts.addMembers(message, (name, value) => {
    switch (name) {
      case 'content':
        return Array.isArray(value) && readContent(texts, value, pathAt)
      case 'stop_reason':
      case 'usage':
        return true
      default:
        return false
    }
  })
  return true
}

function readContent(
  texts: TextCollector,
  content: readonly unknown[],
  pathAt: (position: number) => string,
) {
  for (const [position, block] of listOf(content).entries()) {
    const path = pathAt(position)
    if (isObject(block)) readBlock(texts, path, block, 'whole')
    else texts.addStrings('content', block)
    texts.endAt(path)
  }
  return true
}

/** The stop sequence is text of the model, even if the caller chose it. */
function readEnd(texts: TextCollector, delta: Json) {
  texts.addMembers(delta, (name) => name === 'stop_reason')
  return true
}

function readBlock(texts: TextCollector, path: string, block: Json, kind: FrameText['kind']) {
  const { type } = block
  texts.addMembers(block, (name, value) => {
    if (name === 'input') return texts.addInput(`${path}/input`, value, kind)
    switch (`${String(type)}.${name}`) {
      case 'text.text':
        return texts.add(`${path}/${name}`, value, kind, proseGroup)
      case 'thinking.thinking':
        return texts.add(`${path}/${name}`, value, kind, reasoningGroup)
      case 'redacted_thinking.data':
        return texts.noteUnreadable()
      case 'thinking.signature':
        return true
      default:
        return false
    }
  })
  return true
}

function readDelta(texts: TextCollector, path: string, delta: Json) {
  const { type } = delta
  texts.addMembers(delta, (name, value) => {
    switch (`${String(type)}.${name}`) {
      case 'text_delta.text':
        return texts.add(`${path}/${name}`, value, 'delta', proseGroup)
      case 'thinking_delta.thinking':
        return texts.add(`${path}/${name}`, value, 'delta', reasoningGroup)
      case 'input_json_delta.partial_json':
        return texts.addJson(`${path}/input`, value, 'delta')
      case 'signature_delta.signature':
        return true
      case 'citations_delta.citation':
        return false
      default:
        // A delta of a new kind is a piece of a longer text, like those that are known.
        return isText(name, value) && texts.add(`${path}/${String(type)}.${name}`, value, 'delta')
    }
  })
  return true
}
