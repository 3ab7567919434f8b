import type { RequestTexts } from '#formats/texts/request-texts.ts'
import type { Findings, WatchedTexts } from '#inference/enforcement/findings.ts'
import { noteUnjudged } from '#inference/enforcement/note-matches.ts'
import type { JudgedContent } from '#moderation/judge/judge.ts'
import { textMaxCharacters } from '#moderation/judge/split-content.ts'
import type { RuleOutcome } from '#policies/rules/rule-set.ts'
import { textOf } from '#text/passage.ts'

import { contentsOfRequest, contextOfRequest, joinAnswer } from './judge-texts.ts'

type Watching = { findings: Findings; gates: readonly RuleOutcome[] }
type Kept = Omit<WatchedTexts, 'rules'>

/** Keeps a request for the judge if monitoring rules in plain language apply and their gates are true. */
export function watchRequest(watching: Watching, texts: RequestTexts) {
  watch(watching, 'request', () => keepRequest(texts))
}

/** The same for an answer. */
export function watchAnswer(watching: Watching, texts: readonly string[], context: string) {
  watch(watching, 'response', () => keepAnswer(texts, context))
}

function watch(
  { findings, gates }: Watching,
  direction: Kept['direction'],
  keep: () => Omit<Kept, 'direction'>,
) {
  const monitored = gates.filter(({ rule }) => rule.mode === 'monitoring')
  const undecided = monitored.filter(({ isMatch, isError }) => isError && !isMatch)
  noteUnjudged(
    findings,
    undecided.map(({ rule }) => rule),
  )
  const rules = monitored
    .filter(({ isMatch }) => isMatch)
    .map(({ rule: { policyId, version, threshold, rule } }) => ({
      policyId,
      version,
      threshold,
      text: rule.plain,
    }))
  if (rules.length === 0) return
  const kept = keep()
  if (kept.length > textMaxCharacters) noteUnjudged(findings, rules)
  else if (kept.length > 0) findings.watched.push({ direction, rules, ...kept })
}

/** Keeps only the texts, not the rest of the request such as its images. */
function keepRequest(texts: RequestTexts): Omit<Kept, 'direction'> {
  const { text, lastMessage } = texts
  const context = copyOf(contextOfRequest(texts))
  return {
    length: lengthOf(text.map(textOf)) + context.length, // the last message is a part of the text
    contents: () => contentsOfRequest({ text, lastMessage, context }),
  }
}

function keepAnswer(texts: readonly string[], end: string): Omit<Kept, 'direction'> {
  const context = copyOf(end)
  const contents = (): JudgedContent[] => [
    { direction: 'response', context, text: joinAnswer(texts) },
  ]
  const length = lengthOf(texts)
  return { length: length === 0 ? 0 : length + context.length, contents }
}

const lengthOf = (texts: readonly string[]) => texts.reduce((sum, { length }) => sum + length, 0)

/** Copies the text, because a slice of a long string would keep all of it in memory. */
const copyOf = (text: string) => Buffer.from(text, 'utf16le').toString('utf16le')
