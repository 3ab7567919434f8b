import type { Json } from '#formats/answer.ts'

import { type OutputItem, writeItem, writePart } from './output-item.ts'

/** A frame about an item, without its sequence number. */
export type UnnumberedFrame = [type: string, members: Json]

const added = (item: OutputItem): UnnumberedFrame => [
  'response.output_item.added',
  { output_index: item.index, item: writeItem(item) },
]

const done = (item: OutputItem): UnnumberedFrame => [
  'response.output_item.done',
  { output_index: item.index, item: writeItem(item) },
]

/** Every item has at most one text, so its index in the item is always 0. */
const inContent = ({ id, index }: OutputItem) => ({
  item_id: id,
  output_index: index,
  content_index: 0,
})
const inSummary = ({ id, index }: OutputItem) => ({
  item_id: id,
  output_index: index,
  summary_index: 0,
})

export function startItem(item: OutputItem): UnnumberedFrame[] {
  const { type } = item.block
  if (type !== 'text' && type !== 'refusal') return [added(item)]
  const part = writePart(type, '')
  return [added(item), ['response.content_part.added', { ...inContent(item), part }]]
}

export function addToItem(item: OutputItem, delta: string): UnnumberedFrame[] {
  const isFirst = item.text === ''
  item.text += delta
  switch (item.block.type) {
    case 'text':
      return [['response.output_text.delta', { ...inContent(item), delta, logprobs: [] }]]
    case 'refusal':
      return [['response.refusal.delta', { ...inContent(item), delta }]]
    case 'tool_call':
      return [
        [
          'response.function_call_arguments.delta',
          { item_id: item.id, output_index: item.index, delta },
        ],
      ]
    case 'reasoning':
      return [
        ...(isFirst ? [summaryPart('added', item, '')] : []),
        ['response.reasoning_summary_text.delta', { ...inSummary(item), delta }],
      ]
  }
}

export function finishItem(item: OutputItem, isCut = false): UnnumberedFrame[] {
  item.isDone = true
  item.isCut = isCut
  return [...endTexts(item), done(item)]
}

function endTexts(item: OutputItem): UnnumberedFrame[] {
  const { id, index, block, text } = item
  switch (block.type) {
    case 'text':
      return [
        ['response.output_text.done', { ...inContent(item), text, logprobs: [] }],
        ['response.content_part.done', { ...inContent(item), part: writePart('text', text) }],
      ]
    case 'refusal':
      return [
        ['response.refusal.done', { ...inContent(item), refusal: text }],
        ['response.content_part.done', { ...inContent(item), part: writePart('refusal', text) }],
      ]
    case 'tool_call':
      return [
        [
          'response.function_call_arguments.done',
          { item_id: id, output_index: index, name: block.name, arguments: text },
        ],
      ]
    case 'reasoning':
      if (text === '') return []
      return [
        ['response.reasoning_summary_text.done', { ...inSummary(item), text }],
        summaryPart('done', item, text),
      ]
  }
}

const summaryPart = (moment: 'added' | 'done', item: OutputItem, text: string): UnnumberedFrame => [
  `response.reasoning_summary_part.${moment}`,
  { ...inSummary(item), part: { type: 'summary_text', text } },
]
