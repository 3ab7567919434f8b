import type { Json } from '#formats/answer.ts'
import { isDataUrl } from '#formats/data-url.ts'
import { asObject, asText, isObject, listOf } from '#formats/json-values.ts'
import type { Steps } from '#platform/steps/steps.ts'
import type { Seam } from '#redaction/readings.ts'
import { type FoundValue, pushInSteps, ValueFinder } from '#redaction/value-finder.ts'

/** What is left of a text, and what was found in it. */
export type TextPiece = string | FoundValue

/** A text that is read together with others, and what stands between it and the one before. */
export type JoinedText = { readonly text: string; readonly seam: Seam }

/** The same as a member of an object of the request. */
type Slot = JoinedText & { owner: Json; member: string }

/** Reads texts together; returns the pieces of each. */
export type ReadTogether<Piece> = (
  run: readonly JoinedText[],
) => Steps<readonly (readonly Piece[])[]>

/**
 * The texts of a request that its reader sees as one: parts of a message side by side, and messages of one speaker in a row.
 */
export class JoinedTexts<Piece> {
  readonly #pieces = new Map<Json, Map<string, readonly Piece[]>>()
  readonly #readTogether: ReadTogether<Piece>

  constructor(readTogether: ReadTogether<Piece>) {
    this.#readTogether = readTogether
  }

  /** The pieces of a text that was read together with others. */
  find(owner: Json, member: string): readonly Piece[] | undefined {
    return this.#pieces.get(owner)?.get(member)
  }

  /**
   * Joins the texts of a conversation by the roles of a turn, not by those of the caller: an upstream of another format gets
   * the messages of a turn, and joins them. See `readMessages` and `readInput` of the formats.
   */
  *readConversation(request: Json): Steps<void> {
    yield* this.#readRuns(
      findRuns([...systemPromptOf(request), ...messagesOf(listOf(request['messages']))]),
    )
    yield* this.#readRuns(
      findRuns([...instructionsOf(request), ...itemsOf(listOf(request['input']))]),
    )
  }

  /** Joins the texts of a list if it is a list of parts. */
  *readList(list: readonly unknown[]): Steps<void> {
    yield* this.#readRuns(findRuns([{ speaker: 'user', parts: list.map(partOf) }]))
  }

  *#readRuns(runs: readonly (readonly Slot[])[]): Steps<void> {
    for (const run of runs) {
      const isKnown = run.some(({ owner, member }) => this.find(owner, member))
      if (run.length > 1 && !isKnown) yield* this.#readRun(run)
    }
  }

  *#readRun(run: readonly Slot[]): Steps<void> {
    const texts = yield* this.#readTogether(run)
    for (const [number, { owner, member }] of run.entries()) {
      const members = this.#pieces.get(owner) ?? new Map<string, readonly Piece[]>()
      members.set(member, texts[number] ?? [])
      this.#pieces.set(owner, members)
    }
  }
}

/** A value that is divided over texts is a piece of the first; of the others, their part of it is left out. */
export function* findValuesTogether(run: readonly JoinedText[]): Steps<TextPiece[][]> {
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
  return texts
}

type Speaker = 'system' | 'user' | 'assistant'
type Part = Omit<Slot, 'seam'> | 'reasoning' | 'between' | 'other'
type Message = { speaker: Speaker; parts: readonly Part[] }

const textTypes: ReadonlySet<unknown> = new Set(['text', 'input_text', 'output_text'])
/** In messages of Chat Completions, a refusal counts as text unless it is the assistant's. */
const chatTexts: ReadonlySet<unknown> = new Set(['text', 'refusal'])
const reasoningTypes: ReadonlySet<unknown> = new Set(['thinking', 'redacted_thinking', 'reasoning'])
/** What may separate two texts that become one string for an upstream of another format. */
const between = /^(?:tool_use|tool_result|.*_call)$/

/** The texts that are one for their reader. */
function findRuns(messages: readonly Message[]): Slot[][] {
  const runs: Slot[][] = []
  let open: Slot[] = []
  let last: Speaker | null = null
  const end = () => {
    if (open.length > 0) runs.push(open)
    open = []
  }
  for (const { speaker, parts } of messages) {
    if (speaker !== last) end()
    last = speaker
    let seam: Seam = 'message'
    for (const part of parts) {
      if (part === 'other') end()
      if (typeof part === 'string') continue
      open.push({ ...part, seam })
      seam = 'part'
    }
  }
  end()
  return runs
}

/** Of Chat Completions and Messages. */
function messagesOf(list: readonly unknown[]): Message[] {
  let isBeginning = true
  return list.filter(isObject).flatMap((message) => {
    const role = asText(message['role'])
    const isSystem = isBeginning && isInstructions(role) && hasOnlyText(message, chatTexts)
    if (!isSystem && speakers.has(role)) isBeginning = false
    return isSystem ? [systemOf(message)] : messageOf(message, role)
  })
}

/** Of Responses. */
function itemsOf(list: readonly unknown[]): Message[] {
  let isBeginning = true
  return list.filter(isObject).flatMap((item) => {
    const role = roleOfItem(item)
    const isSystem = isBeginning && isInstructions(role) && hasOnlyText(item, textTypes)
    if (!isSystem && speakers.has(role) && !isEmptyItem(item, role)) isBeginning = false
    if (item['type'] === 'reasoning') return []
    return isSystem ? [systemOf(item)] : messageOf(item, role)
  })
}

const instructionsOf = (request: Json): Message[] =>
  typeof request['instructions'] === 'string'
    ? [{ speaker: 'system', parts: [slotOf(request, 'instructions')] }]
    : []

/** Of Messages. Instructions at the beginning of the messages follow it. */
function systemPromptOf(request: Json): Message[] {
  const { system } = request
  if (Array.isArray(system)) return [{ speaker: 'system', parts: system.map(partOf) }]
  return typeof system === 'string'
    ? [{ speaker: 'system', parts: [slotOf(request, 'system')] }]
    : []
}

const isInstructions = (role: string | undefined) => role === 'system' || role === 'developer'

const systemOf = (message: Json): Message => ({ speaker: 'system', parts: partsOfMessage(message) })

/** Empty if nothing is said: writers leave such a message out, so that its neighbours become adjacent. */
function messageOf(message: Json, role: string | undefined): Message[] {
  const speaker = speakers.get(role)
  if (!speaker) return []
  // Tool results are written before the texts around them, and each result is a text of its own.
  if (role === 'tool' || role === 'function') return [{ speaker, parts: [] }]
  const parts = partsOfMessage(message)
  const isCall = role === 'assistant' && hasCall(message)
  return isCall || !parts.every(isSilent) ? [{ speaker, parts }] : []
}

/**
 * The roles of a turn, in which the instructions at its beginning are not messages. Tool results come from the user. So do
 * later instructions in Chat Completions. In Messages they stay apart, and joining them can only find more.
 */
const speakers: ReadonlyMap<string | undefined, Speaker> = new Map([
  ['user', 'user'],
  ['system', 'user'],
  ['developer', 'user'],
  ['tool', 'user'],
  ['function', 'user'],
  ['assistant', 'assistant'],
])

const callTypes: ReadonlySet<unknown> = new Set(['function_call', 'custom_tool_call'])
const resultTypes: ReadonlySet<unknown> = new Set([
  'function_call_output',
  'custom_tool_call_output',
])

/** Undefined for items that other formats do not have, and leave out. */
function roleOfItem(item: Json): string | undefined {
  const type = item['type'] ?? 'message'
  if (type === 'message') return asText(item['role'])
  if (resultTypes.has(type)) return 'tool'
  return callTypes.has(type) || type === 'reasoning' ? 'assistant' : undefined
}

/** Later instructions are a message of the user. */
const hasOnlyText = ({ content }: Json, types: ReadonlySet<unknown>) =>
  listOf(content).every((part) => types.has(asObject(part)?.['type']))

/**
 * Whether an item of the assistant has no message in a turn, so that instructions after it still count as being at the
 * beginning.
 */
function isEmptyItem(item: Json, role: string | undefined): boolean {
  if (role !== 'assistant' || hasCall(item)) return false
  const { content, type, summary, encrypted_content: sealed } = item
  if (type !== 'reasoning') return Array.isArray(content) && content.length === 0
  const texts = [...listOf(summary), ...listOf(content)]
  return !sealed && !texts.some((part) => asObject(part)?.['text'])
}

/** Whether a message of the assistant calls tools, or an item is such a call. */
const hasCall = ({ type, tool_calls: calls, function_call: legacy }: Json) =>
  callTypes.has(type) || listOf(calls).length > 0 || typeof asObject(legacy)?.['name'] === 'string'

const isSilent = (part: Part) =>
  part === 'reasoning' || (typeof part === 'object' && part.text === '')

function partsOfMessage(item: Json): Part[] {
  const { content, refusal, role } = item
  const parts =
    typeof content === 'string' ? [slotOf(item, 'content')] : listOf(content).map(partOf)
  // Some upstreams get it as a text after the others.
  if (role === 'assistant' && typeof refusal === 'string') parts.push(slotOf(item, 'refusal'))
  return parts
}

function partOf(part: unknown): Part {
  if (!isObject(part)) return 'other'
  const { type } = part
  if (textTypes.has(type)) return slotOf(part, 'text')
  if (type === 'refusal') return slotOf(part, 'refusal')
  if (reasoningTypes.has(type)) return 'reasoning'
  return between.test(asText(type) ?? '') ? 'between' : 'other'
}

function slotOf(owner: Json, member: string): Part {
  const text = asText(owner[member])
  return text === undefined || isDataUrl(text) ? 'other' : { owner, member, text }
}
