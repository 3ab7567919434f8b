import type { GatewayConfig } from '@gatehouse/contract/policy-gateway/config'

import type { Steps } from '#platform/steps/steps.ts'
import { foldCases, scanFolded } from '#text/folded-scan.ts'
import { type LiteralScan, LiteralSet } from '#text/literal-set.ts'
import { normalise } from '#text/normalise.ts'
import { normalisedPieces } from '#text/normalised-pieces.ts'
import { type Passage, readingsOf, toPassage } from '#text/passage.ts'

import { locateTerms, type SoughtTerms, type TermMatch } from './locate-terms.ts'

/** The terms that are in a text, as they stand in the lists. */
export type TermHits = {
  readonly allowlist: readonly string[]
  readonly denylist: readonly string[]
}

/** The terms of both lists. */
export type TermLists = {
  /** Finds the terms in texts of any length. No term begins in one of them and ends in another. */
  find(texts: readonly (string | Passage)[]): Steps<TermHits>
  /** Where the terms of both lists are in a text of moderate length. */
  locate(text: string): Steps<TermMatch[]>
  /** Null where nothing is on the denylist. */
  readonly denied: DeniedTerms | null
}

/** The denylist, to be looked for in texts that grow. */
export type DeniedTerms = {
  /** How long its longest term can be. */
  readonly longest: number
  /** For one text, which is normalised already. Terms have numbers. */
  scan(): LiteralScan
  termOf(number: number): string
}

/** Thousands of terms take too long for one step. */
export function* buildTermLists({ allowlist, denylist }: GatewayConfig['rules']): Steps<TermLists> {
  const soughtLists = [yield* seek(allowlist), yield* seek(denylist)] as const
  const [{ set: allowed }, { set: denied }] = soughtLists

  function* find(texts: readonly (string | Passage)[]): Steps<TermHits> {
    const hits = { allowlist: new Set<string>(), denylist: new Set<string>() }
    for (const text of texts.flatMap((each) => readingsOf(toPassage(each)))) {
      const collected = { allowlist: allowed.collect(), denylist: denied.collect() }
      for (const piece of normalisedPieces(text)) {
        const folded = foldCases(piece)
        collected.allowlist.read(folded)
        collected.denylist.read(folded)
        yield
      }
      addHits(hits.allowlist, allowlist, collected.allowlist.found)
      addHits(hits.denylist, denylist, collected.denylist.found)
    }
    return {
      allowlist: inOrder(allowlist, hits.allowlist),
      denylist: inOrder(denylist, hits.denylist),
    }
  }

  return {
    find,
    locate: (text) => locateTerms(text, soughtLists),
    denied:
      denylist.length === 0
        ? null
        : {
            longest: denied.longest,
            scan: () => scanFolded(denied),
            termOf: (number) => denylist[number] ?? '',
          },
  }
}

function* seek(terms: readonly string[]): Steps<SoughtTerms> {
  const folded: string[] = []
  for (const [index, term] of terms.entries()) {
    folded.push(foldCases(normalise(term).text))
    if (index % termsPerStep === 0) yield
  }
  return { terms, folded, set: yield* LiteralSet.buildInSteps(folded) }
}

function addHits(hits: Set<string>, terms: readonly string[], found: readonly number[]) {
  for (const number of found) hits.add(terms[number] ?? '')
}

/** Each once, as they stand in the list. */
const inOrder = (terms: readonly string[], hits: ReadonlySet<string>) =>
  hits.size === 0 ? [] : [...new Set(terms)].filter((term) => hits.has(term))

const termsPerStep = 64
