import { setTimeout as sleep } from 'node:timers/promises'

import type { Db } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'
import type { SecretBox } from '#platform/secrets.ts'
import { type BackgroundWork, startBackgroundWork } from '#platform/steps/background-work.ts'
import type { PatternEngine } from '#text/pattern-engine.ts'

import { buildSnapshot } from './build-snapshot.ts'
import { type Unfinished, versionKeyOf } from './compiled-versions.ts'
import type { InForce } from './in-force.ts'
import { isSame, type PolicyRef, type Published, readContents } from './snapshot-store.ts'
import { findUnaskable, findUnenforceable, type Snapshot } from './snapshot.ts'

type Options = {
  db: Db
  log: Log
  engine: PatternEngine
  secretBox: SecretBox
  inForce: InForce
  unfinished: Unfinished
}

type Build = {
  published: Published
  work: BackgroundWork
  stopping: AbortController
  /** No request waits for it any more. */
  isLate: boolean
}

/**
 * `changes` counts the organizations whose snapshot was replaced, or that have failed. `unread` are those whose
 * policies could not be read; the next poll tries them again.
 */
export type BuildOutcome = { changes: number; unread: string[] }

/** A build that has computed so long is not waited for, so that it does not delay the others. */
const patienceMs = 1000
const lookAgainMs = 20

/**
 * Builds the snapshots of many organizations side by side and puts each in force when it is ready. A build takes as long
 * as it needs: an organization whose policies take minutes counts as failing meanwhile, and the others do not wait.
 * A newer state of an organization ends the build of the older one and goes on with what that has compiled.
 */
export function createBuilds(options: Options) {
  const { unfinished } = options
  const deps = { ...options, readContents: createReader(options.db) }
  const builds = new Map<string, Build>()
  let outcome: BuildOutcome = { changes: 0, unread: [] }
  let idle = Promise.withResolvers<void>()

  function start(published: Published) {
    const { organizationId } = published
    cancel(organizationId)
    const stopping = new AbortController()
    const work = startBackgroundWork(stopping.signal)
    const build: Build = { published, work, stopping, isLate: false }
    builds.set(organizationId, build)
    void putInForce(build, deps, outcomeOf).finally(() => {
      if (builds.get(organizationId) === build) builds.delete(organizationId)
      if (builds.size === 0) idle.resolve()
    })
  }
  const outcomeOf = () => outcome

  function cancel(organizationId: string) {
    builds.get(organizationId)?.stopping.abort()
    builds.delete(organizationId)
  }

  const isAnyAwaited = () =>
    builds.values().some(({ work, isLate }) => !isLate && work.usedMs() < patienceMs)

  return {
    /** Begins to put in force what is published, unless that has begun already. */
    want(published: Published) {
      const running = builds.get(published.organizationId)
      if (!running || !isSame(running.published, published)) start(published)
    },
    /** The organization needs no other snapshot, or does not exist any more. */
    forget(organizationId: string) {
      cancel(organizationId)
      unfinished.drop(organizationId)
    },
    ids: () => [...builds.keys()],
    /** Waits until all builds have ended, except for slow ones, and returns what has changed since the last time. */
    async settle(waitMaxMs: number): Promise<BuildOutcome> {
      const untilMs = performance.now() + waitMaxMs
      idle = Promise.withResolvers()
      while (isAnyAwaited() && performance.now() < untilMs) {
        await Promise.race([idle.promise, sleep(lookAgainMs)])
      }
      for (const build of builds.values()) if (giveUpWaiting(build, options)) outcome.changes++
      const settled = outcome
      outcome = { changes: 0, unread: [] }
      return settled
    },
    stop() {
      for (const id of builds.keys()) cancel(id)
    },
  }
}

/** One query at a time, however many builds there are: the polls use the same connections. */
function createReader(db: Db) {
  let reading: Promise<unknown> = Promise.resolve()
  return (organizationId: string, wanted: readonly PolicyRef[]) => {
    const answer = reading.then(() => readContents(db, organizationId, wanted))
    reading = answer.catch(() => undefined)
    return answer
  }
}

type BuildDeps = Options & { readContents: ReturnType<typeof createReader> }

/** Ends without effect if the build is stopped. */
async function putInForce(build: Build, deps: BuildDeps, outcomeOf: () => BuildOutcome) {
  const { published, work, stopping } = build
  const { organizationId } = published
  const { log, inForce, unfinished } = deps
  try {
    const compiled = findCompiled(published, deps)
    const known = inForce.get(organizationId)?.gateway ?? null
    const built = await buildSnapshot({ ...deps, work }, published, compiled, known)
    if (stopping.signal.aborted) return
    if (built instanceof Error) {
      log.problem('policies_not_compiled', built)
      inForce.fail(organizationId)
    } else {
      inForce.put(built)
      unfinished.drop(organizationId)
      reportUnenforceable(built, log)
      reportUnaskable(built, log)
    }
  } catch (error) {
    if (stopping.signal.aborted) return
    log.problem('organization_policies_unreadable', error)
    inForce.fail(organizationId)
    outcomeOf().unread.push(organizationId)
  }
  outcomeOf().changes++
}

/** Those of the published versions that are in force already, or that an earlier build has compiled. */
function findCompiled({ organizationId, policies }: Published, { unfinished, inForce }: Options) {
  const compiled = unfinished.of(organizationId)
  for (const policy of inForce.get(organizationId)?.policies ?? []) {
    compiled.set(versionKeyOf(policy), policy)
  }
  const wanted = new Set(policies.map(versionKeyOf))
  for (const key of compiled.keys()) if (!wanted.has(key)) compiled.delete(key)
  return compiled
}

/** What is not in force yet counts as failing until it is. Returns whether that is new. */
function giveUpWaiting(build: Build, { log, inForce }: Options): boolean {
  if (build.isLate) return false
  build.isLate = true
  const { organizationId } = build.published
  log.problem('policies_take_long', new Error(`those of ${organizationId} are not in force yet`))
  inForce.fail(organizationId)
  return true
}

/** Once per snapshot, in one line: an operator has to act, and calls are refused meanwhile. */
function reportUnenforceable(snapshot: Snapshot, log: Log) {
  const [first, ...others] = findUnenforceable(snapshot)
  if (!first || !('problem' in first.rule)) return
  const more = others.length > 0 ? `, and ${others.length} more` : ''
  const what = `version ${first.version} of policy ${first.policyId} of ${snapshot.organizationId}`
  const error = new Error(`the rule of ${what} ${first.rule.problem}${more}`)
  log.problem('policies_not_enforceable', error)
}

/** In one line, as those. Only the organization can give the secret again. */
function reportUnaskable(snapshot: Snapshot, log: Log) {
  const [first, ...others] = findUnaskable(snapshot)
  if (!first) return
  const more = others.length > 0 ? `, and those of ${others.length} more` : ''
  const what = `the secret of guardrail ${first.id} of ${snapshot.organizationId}`
  const error = new Error(`no key of MASTER_KEYS opens ${what}${more}`)
  log.problem('guardrails_not_askable', error)
}
