import type { AnswerEvent, Json, OutFrame, Receipt, Writer } from '#inference/answer.ts'
import { BrokenAnswer } from '#inference/broken-answer.ts'
import { creditMembers } from '#inference/credit-members.ts'
import type { Answering } from '#inference/protocol.ts'

import { newItem, type OutputItem, writeItem } from './output-item.ts'
import { failResponse, toFrame } from './response-error.ts'
import { newResponse, outcomeOf } from './response-object.ts'
import { writeUsage } from './response-usage.ts'
import { addToItem, finishItem, type UnnumberedFrame, startItem } from './write-items.ts'

type Writing = {
  answering: Answering
  response: Json
  /** How many frames were written: the number of the next one. */
  frameCount: number
  /** The items by their number. */
  items: Map<number, OutputItem>
  finished: (AnswerEvent & { type: 'finished' }) | null
}

/** Writes an answer in this format, which allows items to overlap: nothing is kept back but the end. */
export function createResponseWriter(answering: Answering): Writer {
  const writing: Writing = {
    answering,
    response: newResponse(answering),
    frameCount: 0,
    items: new Map(),
    finished: null,
  }
  return {
    write: ({ events }) =>
      events
        .flatMap((event) => writeEvent(writing, event))
        .map((members) => numbered(writing, members)),
    close: (receipt) => [numbered(writing, complete(writing, receipt))],
    fail: (error): OutFrame[] =>
      failResponse(error, {
        response: { ...writing.response, output: writeOutput(writing) },
        sequenceNumber: writing.frameCount,
        isNew: writing.frameCount === 0,
      }),
  }
}

const numbered = (writing: Writing, [type, members]: UnnumberedFrame): OutFrame =>
  toFrame(type, writing.frameCount++, members)

function writeEvent(writing: Writing, event: AnswerEvent): UnnumberedFrame[] {
  switch (event.type) {
    case 'started':
      return ['response.created', 'response.in_progress'].map((type) => [
        type,
        { response: writing.response },
      ])
    case 'block_started': {
      const item = newItem(writing.answering, event.index, event.block)
      writing.items.set(event.index, item)
      return startItem(item)
    }
    case 'block_delta':
      return event.text === '' ? [] : addToItem(itemAt(writing, event.index), event.text)
    case 'block_sealed':
      itemAt(writing, event.index).opaque = event.opaque
      return []
    case 'block_ended':
      return finishItem(itemAt(writing, event.index))
    case 'finished':
      writing.finished = event
      return []
  }
}

function itemAt({ items }: Writing, index: number): OutputItem {
  const item = items.get(index)
  if (!item) throw new BrokenAnswer(`Block ${index} never started.`)
  return item
}

function complete(writing: Writing, receipt: Receipt): UnnumberedFrame {
  const { finished, response } = writing
  if (!finished) throw new BrokenAnswer('The answer is not finished.')
  const hasRefusal = [...writing.items.values()].some(({ block }) => block.type === 'refusal')
  const outcome = outcomeOf(finished.reason, hasRefusal)
  return [
    `response.${outcome.status}`,
    {
      response: {
        ...response,
        ...outcome,
        output: writeOutput(writing),
        usage: writeUsage(receipt.usage ?? finished.usage),
        ...creditMembers(receipt),
      },
    },
  ]
}

const writeOutput = ({ items }: Writing): Json[] =>
  [...items.values()].filter(({ isDone }) => isDone).map(writeItem)
