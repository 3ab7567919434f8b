import { packOpaqueState, unpackOpaqueState } from '#formats/opaque-state.ts'
import type { OpaqueState, Part } from '#formats/turn.ts'

/**
 * This format has one text of reasoning per message and no member for opaque state. `reasoning_signature`
 * holds the opaque states of all reasoning blocks of a message, in their order and separated by spaces; `@` and
 * a number give the position in the text where a block starts, when that is not 0. So a caller that joins the
 * deltas and sends them back returns every block complete.
 */
export function writeSignature(opaque: OpaqueState, place: { isFirst: boolean; startsAt: number }) {
  if (opaque.origin === 'chat_completions') return opaque.data
  const start = place.startsAt === 0 ? '' : `@${place.startsAt}`
  return `${place.isFirst ? '' : ' '}${packOpaqueState(opaque)}${start}`
}

type Signed = { opaque: OpaqueState; startsAt: number }

function readOne(text: string): Signed | undefined {
  const [packed = '', start = '0'] = text.split('@')
  const opaque = unpackOpaqueState(packed)
  return opaque && { opaque, startsAt: Number(start) }
}

const own = (data: string): Signed => ({
  opaque: { origin: 'chat_completions', kind: 'signature', data, id: null },
  startsAt: 0,
})

function readAll(signature: string): Signed[] {
  const signed = signature.trim().split(/\s+/).map(readOne)
  const isOurs = (one: Signed | undefined): one is Signed => one !== undefined
  return signed.every(isOurs) ? signed : [own(signature)]
}

/** The opaque state in one delta of a stream. */
export const readSignature = (signature: string): OpaqueState =>
  (readOne(signature.trim()) ?? own(signature)).opaque

/** The reasoning of one message, divided into its blocks again. */
export function readReasoning(text: string, signature: string): Part[] {
  const signed = signature === '' ? [] : readAll(signature)
  const first = signed[0]?.startsAt ?? text.length
  const unsigned = text.slice(0, first)
  return [
    ...(unsigned === '' ? [] : [{ type: 'reasoning' as const, text: unsigned, opaque: null }]),
    ...signed.map(({ opaque, startsAt }, position) => ({
      type: 'reasoning' as const,
      text: text.slice(startsAt, signed[position + 1]?.startsAt),
      opaque,
    })),
  ]
}
