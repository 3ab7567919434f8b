import type { Json } from '#formats/answer.ts'
import { isDataUrl } from '#formats/data-url.ts'
import { asText, isObject, listOf } from '#formats/json-values.ts'
import type { Seam } from '#redaction/readings.ts'
import { type FoundValue, pushInSteps, ValueFinder } from '#redaction/value-finder.ts'
import type { Steps } from '#text/steps.ts'

/** What stays of a text, and what was found in it. */
export type TextPiece = string | FoundValue

/** A text of a request: a member of an object, and what stands between it and the one before. */
type Slot = { owner: Json; member: string; text: string; seam: Seam }

/**
 * The texts of a request that its reader sees as one: parts of a message side by side, and messages of one speaker in a row. A
 * value that is divided over them is a piece of the first; of the others, their part of it is left out.
 */
export class JoinedTexts {
  readonly #pieces = new Map<Json, Map<string, readonly TextPiece[]>>()

  /** The pieces of a text that was read together with others. */
  find(owner: Json, member: string): readonly TextPiece[] | undefined {
    return this.#pieces.get(owner)?.get(member)
  }

  /** Reads the texts of a list together, where it is one of messages or parts. */
  *readList(list: readonly unknown[]): Steps<void> {
    for (const run of findRuns(list)) {
      const isKnown = run.some(({ owner, member }) => this.find(owner, member))
      if (run.length > 1 && !isKnown) yield* this.#readRun(run)
    }
  }

  *#readRun(run: readonly Slot[]): Steps<void> {
    const texts: TextPiece[][] = [[]]
    const finder = new ValueFinder({
      text: (text) => void texts.at(-1)?.push(text),
      value: (found) => void texts.at(-1)?.push(found),
      seam: () => void texts.push([]),
    })
    for (const [number, { text, seam }] of run.entries()) {
      if (number > 0) finder.join(seam)
      yield* pushInSteps(finder, text)
      yield
    }
    finder.end()
    for (const [number, { owner, member }] of run.entries()) {
      const members = this.#pieces.get(owner) ?? new Map<string, readonly TextPiece[]>()
      members.set(member, texts[number] ?? [])
      this.#pieces.set(owner, members)
    }
  }
}

const textTypes: ReadonlySet<unknown> = new Set(['text', 'input_text', 'output_text'])
const speakers: Readonly<Record<string, string>> = {
  user: 'user',
  assistant: 'assistant',
  system: 'system',
  developer: 'system',
}
/** What may stand between two texts that are one string for an upstream of another format. */
const between = /^(?:tool_use|tool_result|thinking|redacted_thinking|reasoning|.*_call)$/

/** The texts that are one for their reader. */
function findRuns(list: readonly unknown[]): Slot[][] {
  const runs: Slot[][] = []
  let open: Slot[] = []
  let speaker: string | null = null
  const end = () => {
    if (open.length > 0) runs.push(open)
    open = []
  }
  for (const item of list) {
    const next = speakerOf(item, speaker)
    if (next !== speaker) end()
    speaker = next
    let seam: Seam = next === null ? 'part' : 'message'
    for (const part of partsOf(item, next)) {
      if (part === 'other') end()
      if (typeof part === 'string') continue
      open.push({ ...part, seam })
      seam = 'part'
    }
  }
  end()
  return runs
}

/** Who says a message; null where a list is none of messages. */
function speakerOf(item: unknown, before: string | null): string | null {
  if (!isObject(item)) return null
  const role = asText(item['role'])
  if (role !== undefined) return speakers[role] ?? role
  const type = asText(item['type']) ?? ''
  // Items of their own, in a list of messages: calls are the model's, and results come from the user.
  const isOwn = type === 'reasoning' || type.endsWith('_call') || type.endsWith('_call_output')
  if (before === null || !isOwn) return null
  return type.endsWith('_output') ? 'user' : 'assistant'
}

type Part = Omit<Slot, 'seam'> | 'between' | 'other'

/** The parts of a message, or an item that is a part itself. */
function partsOf(item: unknown, speaker: string | null): Part[] {
  if (!isObject(item)) return ['other']
  if (speaker === null) return [partOf(item)]
  // The results of two tools are two texts.
  if (!Object.hasOwn(speakers, speaker)) return ['other']
  const { content } = item
  if (typeof content === 'string') return [slotOf(item, 'content')]
  return listOf(content).map((part) => (isObject(part) ? partOf(part) : 'other'))
}

function partOf(part: Json): Part {
  if (textTypes.has(part['type'])) return slotOf(part, 'text')
  return between.test(asText(part['type']) ?? '') ? 'between' : 'other'
}

function slotOf(owner: Json, member: string): Part {
  const text = asText(owner[member])
  return text === undefined || isDataUrl(text) ? 'other' : { owner, member, text }
}
