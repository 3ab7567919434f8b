import type { GatewayConfig } from '@gatehouse/contract/policy-gateway/config'

import type { RequestTexts } from '#formats/texts/request-texts.ts'
import type { GatewayInForce } from '#gateway-config/compile-gateway.ts'
import { type Arm, isEnforcedIn, isProtectedIn } from '#gateway-config/decide/arm.ts'
import { isFlagged } from '#gateway-config/decide/categories.ts'
import { type Decision, decide, type GatewayOutcome } from '#gateway-config/decide/decide.ts'
import type { DeniedTerms } from '#gateway-config/decide/term-lists.ts'
import type { CountedQuotas } from '#limits/quotas/counted-quotas.ts'
import { categories, type Category } from '#moderation/categories.ts'
import type { Steps } from '#platform/steps/steps.ts'
import type { LiteralScan } from '#text/literal-set.ts'
import type { Passage } from '#text/passage.ts'

import { armOfCall, type DrawnCall } from './arm-of-call.ts'

/**
 * The configuration of the policy gateway as it applies to one call: what it looks for, what has been found in the request and
 * the answer so far, and what it decides.
 */
export class ConfiguredCall {
  readonly gateway: GatewayInForce
  readonly arm: Arm
  /** Whether its decisions are applied, and not only recorded. */
  readonly isEnforced: boolean
  /** Whether everything else in it is applied. A rollback does not end that. */
  readonly isProtected: boolean
  /** How earlier answers are checked. */
  get historyMode(): NonNullable<GatewayConfig['rules']['assistant_history']> {
    const { assistant_history = 'answer' } = this.gateway.config.rules
    return this.isProtected ? assistant_history : 'answer'
  }

  /** Null if nothing is redacted. `restores`: whether the placeholders in the answer are replaced by the original values. */
  get redaction(): { readonly restores: boolean } | null {
    const { redact, redact_restore: restores = false } = this.gateway.config.rules
    return this.isProtected && redact ? { restores } : null
  }

  /** The categories that it flags and scorers know. */
  readonly flagged: readonly Category[]
  readonly #allowlist = new Set<string>()
  readonly #denylist = new Set<string>()
  readonly #categories = new Set<Category>()
  readonly #exceededQuotas: ReadonlySet<'user' | 'project'>
  readonly #addHeaders: Answered['addHeaders']

  constructor(gateway: GatewayInForce, arm: Arm, { counted, addHeaders }: Answered) {
    this.gateway = gateway
    this.arm = arm
    // Only quotas that are not enforced: the others have refused the call before.
    this.#exceededQuotas = new Set(counted?.exceeded)
    this.#addHeaders = addHeaders
    this.isEnforced = isEnforcedIn(arm)
    this.isProtected = isProtectedIn(arm)
    const { flagged_categories } = gateway.config.rules
    const flagged = categories.filter((each) => isFlagged(flagged_categories, each))
    this.flagged = this.isSampled ? flagged : []
  }

  /** The same configuration, for a text that is no part of the call: what is found in it does not count for the call. */
  apart(): ConfiguredCall {
    return new ConfiguredCall(this.gateway, this.arm, { addHeaders: () => undefined })
  }

  /** Whether the call is in the sample of the rollout. Outside of it nothing of the configuration applies. */
  get isSampled(): boolean {
    return this.arm !== 'outside'
  }

  /**
   * Looks for denied terms anywhere in the request, and for allowed terms in what users and tools say. Returns whether a denied
   * term was found.
   */
  *readRequest({ text, userText }: Pick<RequestTexts, 'text' | 'userText'>): Steps<boolean> {
    const { allowlist, denylist } = this.gateway.config.rules
    if (!this.isSampled || allowlist.length + denylist.length === 0) return false
    const { terms } = this.gateway
    const users = new Set(userText)
    const found = yield* terms.find(userText)
    const elsewhere = yield* terms.find(text.filter((each) => !users.has(each)))
    for (const term of found.allowlist) this.#allowlist.add(term)
    for (const term of [...found.denylist, ...elsewhere.denylist]) this.#denylist.add(term)
    return found.denylist.length + elsewhere.denylist.length > 0
  }

  /** Whether a text contains a denied term. */
  *isDenied(text: Passage): Steps<boolean> {
    return (yield* this.gateway.terms.find([text])).denylist.length > 0
  }

  /** Looks for denied terms in an earlier answer; returns whether the call is refused for them. */
  *readHistory(texts: readonly Passage[]): Steps<boolean> {
    if (!this.#denied) return false
    const found = yield* this.gateway.terms.find(texts)
    for (const term of found.denylist) this.#denylist.add(term)
    return this.isEnforced && found.denylist.length > 0
  }

  /** Looks for denied terms in an answer that the configuration may not end. The allowlist is about requests only. */
  *readAnswer(texts: readonly Passage[]): Steps<void> {
    if (!this.#denied || this.isEnforced) return
    const found = yield* this.gateway.terms.find(texts)
    for (const term of found.denylist) this.#denylist.add(term)
  }

  noteCategories(found: Iterable<Category>) {
    for (const category of found) this.#categories.add(category)
  }

  /** The denylist, if it may end answers; otherwise null. */
  get endingTerms(): EndingTerms | null {
    const denied = this.#denied
    if (!denied || !this.isEnforced) return null
    return { longest: denied.longest, scan: () => this.#scan(denied) }
  }

  /** What it decides, given everything that has been found so far. */
  decide(): GatewayOutcome {
    return decide(this.gateway.config, {
      arm: this.arm,
      exceededQuotas: this.#exceededQuotas,
      terms: { allowlist: [...this.#allowlist], denylist: [...this.#denylist] },
      categories: [...this.#categories],
    })
  }

  /** Puts the decision into the head of the answer, unless the head has been sent. */
  announce(decision: Decision) {
    if (!this.isSampled) return
    this.#addHeaders({ 'x-policy-decision': `${decision}; mode=${this.arm}` })
  }

  get #denied(): DeniedTerms | null {
    return this.isSampled ? this.gateway.terms.denied : null
  }

  /** A scan that also records which terms it has found. */
  #scan(denied: DeniedTerms): LiteralScan {
    const scan = denied.scan()
    return {
      read: (piece, onHit) =>
        scan.read(piece, (number, start) => {
          this.#denylist.add(denied.termOf(number))
          onHit(number, start)
        }),
      get held() {
        return scan.held
      },
    }
  }
}

export type EndingTerms = { readonly longest: number; scan(): LiteralScan }

type Answered = {
  /** The quotas that the call counts in; known once it is admitted. */
  readonly counted?: CountedQuotas | null
  addHeaders(headers: Record<string, string>): void
}

/** Null if the organization has saved no configuration. */
export function openConfigured(call: Answered & DrawnCall): ConfiguredCall | null {
  const { gateway } = call.policies.snapshot
  return gateway && new ConfiguredCall(gateway, armOfCall(gateway, call), call)
}
