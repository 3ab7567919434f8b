import { type Asker, finish, runInTurns, type Steps } from '#platform/steps/steps.ts'
import type { PatternEngine } from '#text/pattern-engine.ts'

import { type AnswerOpener, type AnswerRules, createAnswerRules } from './answer-rules.ts'
import {
  type CallFacts,
  contextOf,
  type ExpressionContext,
  type KnownTexts,
  scoresName,
  type TextVariable,
} from './facts.ts'
import type { Atom, Formula } from './formula.ts'
import type { CompiledRule } from './rule-program.ts'
import { type ScoreMap, scoreMax, toBasisPoints } from './score.ts'
import type { SetRule } from './set-rule.ts'
import type { Text } from './text.ts'
import { createVocabulary, type TextSegment, type Vocabulary } from './vocabulary.ts'

/** What a rule says of texts. */
export type RuleOutcome = {
  rule: SetRule
  /** The place of the rule in its set. */
  index: number
  /** Basis points. */
  score: number
  isMatch: boolean
  /** The expression has no value, as 1 / 0. */
  isError: boolean
  /** A category that the rule reads has no score: it is unknown whether the rule matches. */
  isUnscored?: boolean
  /** Why it is not; undefined where the reason is not known. */
  failure?: unknown
}

/** What a rule needs besides the texts and the facts of a call. */
type RuleKind = 'exact' | 'scored' | 'judged'

/** Texts that the rules of a set are evaluated on. They are read once, whatever is asked later. */
export type OpenTexts = {
  /** The rules that need nothing else. */
  exact(): Steps<readonly RuleOutcome[]>
  /** The rules that read scores of categories. */
  scored(scores: ScoreMap): Steps<readonly RuleOutcome[]>
  /** The gates of the rules in plain language: a judge is to be asked about those that match. */
  gates(scores: ScoreMap): Steps<readonly RuleOutcome[]>
}

/** Many rules that are evaluated in one pass over each segment. Immutable, and shared by all calls. */
export class RuleSet {
  readonly rules: readonly SetRule[]
  /** Whose scores the rules read. */
  readonly categories: ReadonlySet<string>
  /** Whether some rule is in plain language. */
  readonly needsJudge: boolean
  readonly #sources: { readonly vocabulary: Vocabulary; readonly known: KnownTexts }
  readonly #texts: readonly TextVariable[]
  readonly #answers: AnswerOpener

  constructor(
    rules: readonly SetRule[],
    engine: PatternEngine,
    parts = finish(buildParts(rules, engine)),
  ) {
    this.rules = rules
    this.needsJudge = rules.some(({ rule }) => rule.needs.judge)
    this.categories = new Set(rules.flatMap(({ rule }) => [...rule.categories]))
    this.#sources = { vocabulary: parts.vocabulary, known: new WeakMap() }
    this.#texts = parts.texts
    this.#answers = parts.answers
  }

  /** The same as the constructor: the rules of a large organization take too long for one step. */
  static *buildInSteps(rules: readonly SetRule[], engine: PatternEngine): Steps<RuleSet> {
    return new RuleSet(rules, engine, yield* buildParts(rules, engine))
  }

  /** Builds what only answers need. Otherwise the first answer does it, all at once. */
  prepareAnswers(): Steps<void> {
    return this.#answers.prepare()
  }

  /** Prepares complete texts for evaluation; nothing is read yet. */
  openTexts(facts: CallFacts, texts: readonly TextSegment[]): OpenTexts {
    const context = contextOf(facts, texts, this.#sources)
    const read = () => this.#readInSteps(context)
    const evaluate = (kind: RuleKind, values: ExpressionContext) =>
      this.#evaluateRules(kind, values)
    return {
      *exact() {
        yield* read()
        return yield* evaluate('exact', context)
      },
      *scored(scores) {
        yield* read()
        return yield* evaluate('scored', { ...context, [scoresName]: scores })
      },
      *gates(scores) {
        yield* read()
        return yield* evaluate('judged', { ...context, [scoresName]: scores })
      },
    }
  }

  /** Evaluates every rule that needs nothing but the texts and the facts of a call; the others are not in the result. */
  evaluate(facts: CallFacts, texts: readonly TextSegment[]): readonly RuleOutcome[] {
    return finish(this.openTexts(facts, texts).exact())
  }

  /** What a guard of an answer needs: the formulas, with constants already evaluated for this call. */
  openAnswer(facts: CallFacts): AnswerRules {
    return finish(this.openAnswerInSteps(facts))
  }

  /** The same in steps: constants may ask for a long `last_message` or `system`. */
  openAnswerInSteps(facts: CallFacts): Steps<AnswerRules> {
    return this.#answers.open(contextOf({ ...facts, direction: 'response' }, [], this.#sources))
  }

  *#readInSteps(context: ExpressionContext): Steps<void> {
    for (const name of this.#texts) yield* context[name].readInSteps()
  }

  *#evaluateRules(kind: RuleKind, context: ExpressionContext): Steps<readonly RuleOutcome[]> {
    const outcomes: RuleOutcome[] = []
    for (const [index, rule] of this.rules.entries()) {
      if (kindOf(rule.rule) !== kind) continue
      outcomes.push(evaluateRule(index, rule, context))
      yield
    }
    return outcomes
  }
}

function* buildParts(rules: readonly SetRule[], engine: PatternEngine) {
  const vocabulary = yield* createVocabulary(rules, engine)
  const texts = [...new Set(rules.flatMap(({ rule }) => [...rule.texts]))]
  const answers = yield* createAnswerRules(rules, engine)
  return { vocabulary, texts, answers }
}

/**
 * Evaluates rules on long texts without holding up the event loop: those that need nothing else, and where there are scores
 * also those that read them.
 */
export async function evaluateInSlices(
  open: OpenTexts,
  asker: Asker,
  scores?: ScoreMap,
): Promise<readonly RuleOutcome[]> {
  const exact = await runInTurns(open.exact(), asker)
  return scores ? [...exact, ...(await runInTurns(open.scored(scores), asker))] : exact
}

function kindOf({ needs, categories }: CompiledRule): RuleKind {
  if (needs.judge) return 'judged'
  return categories.size > 0 ? 'scored' : 'exact'
}

function evaluateRule(index: number, rule: SetRule, context: ExpressionContext): RuleOutcome {
  return { rule, index, ...evaluate(rule, context) }
}

function evaluate(
  { rule, mode, threshold }: SetRule,
  context: ExpressionContext,
): Omit<RuleOutcome, 'rule' | 'index'> {
  const isUnscored = rule.categories.size > 0 && lacksScores(rule, context[scoresName])
  try {
    if (isUnscored) throw new Error('A score is missing.')
    const score = scoreOf(rule, context)
    return { score, isMatch: score >= threshold, isError: false }
  } catch {
    // Where a rule protects something, what it cannot decide does not pass.
    const isMatch = mode === 'enforcing'
    const score = isMatch ? scoreMax : 0
    return { score, isMatch, isError: true, ...(isUnscored && { isUnscored }) }
  }
}

/** Most rules ask for something that is not in the text: then they are false, whatever else they ask, and need not be evaluated. */
function scoreOf({ evaluate: program, formula }: CompiledRule, context: ExpressionContext): number {
  if (!program) return scoreMax
  const { text } = context
  const isFalse = formula && text.isRead && !mayBeTrue(formula, text)
  return isFalse ? 0 : toBasisPoints(program(context))
}

/** Whether a formula is true if all that it asks besides the text is. Without negation, more that is true makes nothing false. */
function mayBeTrue(formula: Formula, text: Text): boolean {
  if (formula.kind === 'constant') return true
  if (formula.kind === 'atom') return mayBeFound(formula.atom, text)
  const { kind, parts } = formula
  const isTrue = (part: Formula) => mayBeTrue(part, text)
  return kind === 'and' ? parts.every(isTrue) : parts.some(isTrue)
}

function mayBeFound(atom: Atom, text: Text): boolean {
  switch (atom.kind) {
    case 'pattern':
      return text.mayMatch(atom.pattern)
    case 'literal':
      return text.containsNormalised(atom.text)
    case 'size':
      return text.size() >= atom.atLeast
    case 'entity':
      return text.count(atom.entity) >= atom.atLeast
    case 'score':
    case 'judged':
      return true
  }
}

const lacksScores = ({ categories }: CompiledRule, scores: ScoreMap | undefined) =>
  !scores || [...categories].some((category) => !scores.has(category))
