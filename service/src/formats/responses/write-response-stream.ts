import type { AnswerEvent, Json, OutFrame, Receipt, Writer } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import { creditMembers } from '#formats/credit-members.ts'
import type { Answering } from '#formats/format.ts'

import { newItem, type OutputItem, writeItem } from './output-item.ts'
import { failResponse, toFrame } from './response-error.ts'
import { newResponse, toOutcome } from './response-object.ts'
import { writeToolUsage, writeUsage } from './response-usage.ts'
import { addToItem, finishItem, type UnnumberedFrame, startItem } from './write-items.ts'

type Progress = {
  answering: Answering
  response: Json
  /** How many frames were written, which is the sequence number of the next one. */
  frameCount: number
  /** By the index of their block. */
  items: Map<number, OutputItem>
  finished: (AnswerEvent & { type: 'finished' }) | null
}

/** Writes an answer in this format, in which items may overlap: only the last frame is held. */
export function createResponseWriter(answering: Answering): Writer {
  const progress: Progress = {
    answering,
    response: newResponse(answering),
    frameCount: 0,
    items: new Map(),
    finished: null,
  }
  return {
    write: ({ events }) =>
      events
        .flatMap((event) => writeEvent(progress, event))
        .map((members) => toNumberedFrame(progress, members)),
    close: (receipt) => [toNumberedFrame(progress, complete(progress, receipt))],
    fail: (error): OutFrame[] =>
      failResponse(error, {
        response: { ...progress.response, output: writeOutput(progress) },
        sequenceNumber: progress.frameCount,
        isNew: progress.frameCount === 0,
        hasErrorEvent: answering.hasErrorEvent,
      }),
  }
}

const toNumberedFrame = (progress: Progress, [type, members]: UnnumberedFrame): OutFrame =>
  toFrame(type, progress.frameCount++, members)

function writeEvent(progress: Progress, event: AnswerEvent): UnnumberedFrame[] {
  switch (event.type) {
    case 'started':
      return ['response.created', 'response.in_progress'].map((type) => [
        type,
        { response: progress.response },
      ])
    case 'block_started': {
      const item = newItem(progress.answering, event.index, event.block)
      progress.items.set(event.index, item)
      return startItem(item)
    }
    case 'block_delta':
      return event.text === '' ? [] : addToItem(itemAt(progress, event.index), event.text)
    case 'block_sealed':
      itemAt(progress, event.index).opaque = event.opaque
      return []
    case 'block_ended':
      return finishItem(itemAt(progress, event.index), event.isCut)
    case 'finished':
      progress.finished = event
      return []
  }
}

function itemAt({ items }: Progress, index: number): OutputItem {
  const item = items.get(index)
  if (!item) throw new BrokenAnswer(`Block ${index} never started.`)
  return item
}

function complete(progress: Progress, receipt: Receipt): UnnumberedFrame {
  const { finished, response } = progress
  if (!finished) throw new BrokenAnswer('The answer is not finished.')
  const hasRefusal = [...progress.items.values()].some(({ block }) => block.type === 'refusal')
  const outcome = toOutcome(finished.reason, hasRefusal)
  return [
    `response.${outcome.status}`,
    {
      response: {
        ...response,
        ...outcome,
        output: writeOutput(progress),
        usage: writeUsage(receipt.usage ?? finished.usage),
        ...writeToolUsage(finished.usage),
        ...creditMembers(receipt),
      },
    },
  ]
}

const writeOutput = ({ items }: Progress): Json[] =>
  [...items.values()].filter(({ isDone }) => isDone).map(writeItem)
