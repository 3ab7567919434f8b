import type { Json } from '#formats/answer.ts'
import type { CallerFormatName } from '#formats/format-name.ts'
import { upstreamFormats } from '#formats/formats.ts'
import type { FrameTexts } from '#formats/texts/frame-texts.ts'
import { tailLength } from '#formats/texts/text-views.ts'
import type { WholeView } from '#policies/guard/testing/enforce-whole.ts'

import type { WrittenAnswer } from './written-frame.ts'

/** The other readings of an answer, as a reader sees it frame by frame. */
export function readStreamedViews(
  format: CallerFormatName,
  { frames }: WrittenAnswer,
  prefill = '',
) {
  const reader = upstreamFormats.get(format)!.createTextReader(prefill)
  return orderViews(
    frames.flatMap(({ bytes }) => {
      const data = /^data: (\{.*\})$/m.exec(bytes)?.[1]
      if (data === undefined) return []
      const event = /^event: (.*)$/m.exec(bytes)?.[1] ?? ''
      const source = { event, data, json: JSON.parse(data) as Json, bytes: Buffer.alloc(0) }
      return [reader.read({ events: [], source })]
    }),
  )
}

export const readPlainViews = (format: CallerFormatName, { body }: WrittenAnswer, prefill = '') =>
  orderViews([upstreamFormats.get(format)!.createTextReader(prefill).readPlain(body)])

/** Each unit of a text counts in the order in which they come; one of a view has the order of what it stands for. */
function orderViews(frames: readonly FrameTexts[]): WholeView[] {
  const orders = new Map<string, number[]>()
  const views = new Map<string, { text: string; orders: number[] }>()
  let order = 0
  for (const { channel, text, kind, views: found = [] } of frames.flatMap(({ texts }) => texts)) {
    const known = orders.get(channel) ?? []
    orders.set(channel, known)
    const more = kind === 'delta' ? text : text.slice(known.length)
    // A text that goes on after its end repeats some of it.
    const isResumed = known.length === 0 && channel.endsWith('~')
    const before = isResumed ? orders.get(channel.slice(0, -1)) : undefined
    const repeated = Math.min(tailLength, before?.length ?? 0)
    for (let unit = 0; unit < more.length; unit++) known.push(unit < repeated ? order : order++)
    for (const view of found) {
      const read = views.get(view.channel) ?? { text: '', orders: [] }
      views.set(view.channel, read)
      read.text += view.text
      for (let unit = 0; unit < view.text.length; unit++) {
        read.orders.push(known[view.isFlat ? view.from : view.from + unit]!)
      }
    }
  }
  return [...views.values()]
}
