import type { Script } from '@gatehouse/tools/scripted-upstream/script'

import { createRandom } from '#support/credits/calls.ts'
import { toolNames } from '#support/sdk/caller.ts'
import { type Format, formats } from '#support/streams/call.ts'

// Conversations that nobody has anything against, made from a seed. Their texts come close to what is forbidden: a text ends
// where a forbidden phrase would begin, or begins where one would end, and there are escapes, quotes and line breaks.

const kinds = ['text', 'thinking', 'call', 'json'] as const
type Kind = (typeof kinds)[number]

export type PlannedTurn = {
  kind: Kind
  /** What the user, or a tool, says. */
  asked: string
  /** What the model answers. */
  script: Script
  isStreamed: boolean
}

export type Plan = {
  id: string
  format: Format
  model: string
  isThinking: boolean
  turns: readonly PlannedTurn[]
}

/** The phrases that the policies of the test forbid. */
export const forbidden = {
  response: 'kumquat marmalade',
  both: 'project falcon',
  list: 'secret word',
  denylist: 'purple monkey',
  category: '[[cat:self- harm=0.99]]',
}

const halves = Object.values(forbidden).map((phrase) => phrase.split(' ') as [string, string])
const firstHalves = halves.map(([first]) => first)
const secondHalves = halves.map(([, second]) => second)

const plainWords = 'sun hill bird quiet river walks over under with seven blue'.split(' ')
const words = plainWords.concat(
  [
    'naïve',
    'Éclair',
    '日本',
    '😀',
    '"quoted"',
    "it's",
    '{"a":1}',
    '<b>',
    '50%',
    '[[cat:hate=0.4]]',
  ],
  [String.raw`C:\new\table`, String.raw`\u0041`, String.raw`a\\nb`, String.raw`\"`, '\n', '\t'],
)

const models = ['claude-scripted', 'chat-scripted', 'responses-scripted', 'gpt-scripted']

/** The mark of a turn, which each of its texts has every few words: every part of a text shows where it comes from. */
export const markOf = (id: string, turn: number) => `${id}t${turn}`
export const marksIn = (text: string) => new Set(text.match(/c\d+t\d+/g))

/** Which turns of which conversation a text comes from. */
export function readMark(mark: string) {
  const [, id = '', turn = ''] = /^(c\d+)t(\d+)$/.exec(mark) ?? []
  return { id, turn: Number(turn) }
}

export function planConversation(seed: number, number: number, turnsLeast = 1): Plan {
  const random = createRandom(seed + number * 7919)
  const oneOf = <T>(list: readonly T[]): T => list[random(list.length)] as T
  const id = `c${number}`

  /** Some words, between two halves of forbidden phrases. */
  function sayWords(turn: number, most: number): string {
    const said = Array.from({ length: 1 + random(most) }, () => {
      const half = random(8) === 0 ? ` ${oneOf([...firstHalves, ...secondHalves])}` : ''
      return `${oneOf(words)}${half} ${oneOf(words)} the ${markOf(id, turn)}`
    })
    const begin = random(3) === 0 ? `${oneOf(secondHalves)} ` : ''
    const end = random(3) === 0 ? ` ${oneOf(firstHalves)}` : ''
    return `${begin}the ${said.join(' ')}${end}`
  }

  /** Mostly short, sometimes many windows long. */
  const sayText = (turn: number) => sayWords(turn, random(8) === 0 ? 60 : 8)

  function planCall(turn: number) {
    const also = random(2) === 0 && { also: [sayWords(turn, 2) + ' so', 'or ' + sayWords(turn, 2)] }
    return { name: oneOf(toolNames), arguments: { city: sayWords(turn, 3), zone: 'UTC', ...also } }
  }

  function planScript(kind: Kind, turn: number): Script {
    switch (kind) {
      case 'text':
        return { text: sayText(turn) }
      case 'thinking':
        return { thinking: sayText(turn), text: sayText(turn) }
      case 'call': {
        const text = random(2) === 0 ? { text: sayText(turn) } : {}
        const toolCalls = Array.from({ length: 1 + random(2) }, () => planCall(turn))
        return { ...text, toolCalls, argumentPieces: 1 + random(9) }
      }
      case 'json': {
        const place = { name: sayText(turn), people: random(1000), isCapital: true }
        return { text: random(2) === 0 ? JSON.stringify(place) : toAscii(place) }
      }
    }
  }

  const isThinking = random(3) === 0
  // Short ones are more usual.
  const length = Math.max(turnsLeast, 1 + Math.min(random(20), random(20)))
  const turns = Array.from({ length }, (_, turn) => {
    const kind = oneOf(kinds.filter((each) => isThinking || each !== 'thinking'))
    const pieceTokens = 1 + random(6)
    const script = { ...planScript(kind, turn), pieceTokens }
    return { kind, asked: sayWords(turn, 4), script, isStreamed: random(2) === 0 }
  })
  const format = formats[number % formats.length] as Format
  return { id, format, model: oneOf(models), isThinking, turns }
}

/** Every character outside of ASCII as an escape, as many programs write JSON. */
const toAscii = (value: unknown) =>
  JSON.stringify(value).replaceAll(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
