import type { Json } from '#formats/answer.ts'
import { isObject, listOf } from '#formats/json-values.ts'
import type { EarlierAnswer } from '#formats/texts/request-texts.ts'
import type { Findings } from '#inference/enforcement/findings.ts'
import { noteFound } from '#inference/enforcement/note-matches.ts'
import type { Segment } from '#moderation/scorer.ts'
import { wholesOf } from '#text/passage.ts'
import { windowsOf } from '#text/windows/window-cutter.ts'
import type { WindowGrid } from '#text/windows/window-grid.ts'

/**
 * What scorers are asked about an earlier answer. It was scored in windows when it was given, so its scores are known if those
 * of all its windows are.
 */
export const toSegments = ({ said }: EarlierAnswer): Segment[] =>
  said.flatMap((passage) => {
    const [only, ...others] = passage.parts
    return wholesOf(passage).map((text) => ({
      role: 'assistant' as const,
      text,
      ...(text === only &&
        others.length === 0 && {
          windows: (grid: WindowGrid) => windowsOf(text, grid),
        }),
    }))
  })

/** Notes that something was found in an earlier answer. */
export const noteInHistory = (findings: Findings, answer: EarlierAnswer | undefined) =>
  noteFound(findings, {
    direction: 'history',
    part: 'history',
    message: answer?.message ?? null,
  })

const itemsOfAssistant: ReadonlySet<unknown> = new Set([
  'function_call',
  'custom_tool_call',
  'reasoning',
])

/**
 * Where in the caller's request the earlier answer with this number begins, such as `messages[3]`; null if it is in one of
 * several.
 */
export function placeOf(body: Json, number: number | null): string {
  const name = Array.isArray(body['input']) ? 'input' : 'messages'
  let [count, isInAnswer] = [0, false]
  for (const [index, item] of listOf(body[name]).entries()) {
    if (!isObject(item) || saysNothing(item)) continue
    const isAnswer = item['role'] === 'assistant' || itemsOfAssistant.has(item['type'])
    if (isAnswer && !isInAnswer && count++ === number) return `${name}[${index}]`
    isInAnswer = isAnswer
  }
  return name
}

/** Such a message does not divide an answer: the answer continues after it. */
const saysNothing = ({ type = 'message', content, tool_calls: calls }: Json): boolean =>
  type === 'message' &&
  calls === undefined &&
  (content === '' ||
    (Array.isArray(content) && content.every((part) => isObject(part) && part['text'] === '')))
