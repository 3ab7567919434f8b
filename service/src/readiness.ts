import { findModerationGap } from '#moderation/moderate.ts'
import type { Db } from '#platform/database.ts'
import { findMismatch, readSchemaState } from '#platform/migrations.ts'

import type { House } from './assemble.ts'

/** A process that has not heard of changes for this long should not get traffic. */
const staleMs = 30_000

/** Why a process should get no traffic. */
export function createReadiness(house: House): () => Promise<string[]> {
  const { config, policies, moderation, stateDirectory } = house
  const findDatabaseFault = createDatabaseCheck(house)
  const explainSilence = createSilenceCheck(house)
  return async () => {
    const reasons: (string | null)[] = []
    // With limits that each process counts for itself, every further process would multiply the limits.
    if (!config.REDIS_URL && policies.others() > 0) {
      reasons.push('several processes share this database, but REDIS_URL is not set')
    }
    // Calls to models are refused meanwhile.
    if (config.MODELS_FILE !== undefined) reasons.push(findModerationGap(moderation.current()))
    // If the database went away, the costs of calls could not be kept.
    reasons.push(stateDirectory.fault())
    if (isFresh(house)) {
      // The poll has found published policies, which are about to be put in force.
      if (!policies.areKnown()) reasons.push('the policies are not in force yet')
      reasons.push(await findDatabaseFault())
    } else if (!policies.canServeAlone()) {
      // Without the database a single process keeps serving, by the policies that it last knew.
      reasons.push(explainSilence())
    }
    return reasons.filter((reason) => reason !== null)
  }
}

function isFresh({ follower, now }: House): boolean {
  const lastPollAt = follower.lastPollAt()
  return lastPollAt !== undefined && now().getTime() - lastPollAt.getTime() < staleMs
}

const noChanges = 'no configuration changes were received lately: is the database up?'

/**
 * Why no changes arrive: the database may be reachable but have no tables. We do not wait for the answer of a database that is
 * away.
 */
function createSilenceCheck({ db }: House) {
  let explanation = noChanges
  let isChecking = false
  function check() {
    if (isChecking) return
    isChecking = true
    const explain = (fault: string | null) => (explanation = fault ?? noChanges)
    void findSchemaFault(db)
      .then(explain, () => explain(null))
      .finally(() => (isChecking = false))
  }
  check()
  return () => {
    check()
    return explanation
  }
}

async function findSchemaFault(db: Db): Promise<string | null> {
  const state = await readSchemaState(db)
  return findMismatch(state) ?? (state.missing.length > 0 ? missingMigrations : null)
}

const missingMigrations = 'migrations are missing: run migrate'
/** How often a ready process checks the schema again, because a newer release may migrate at any time. */
const databaseCheckMs = 10_000

/**
 * What is wrong with the schema or the master key, as a reason not to be ready. If a check fails, its last result stays in
 * force.
 */
function createDatabaseCheck({ db, now, installation }: House) {
  let fault: string | null = missingMigrations
  let checkedAtMs = 0
  async function findFault(): Promise<string | null> {
    const schemaFault = await findSchemaFault(db)
    if (schemaFault !== null) return schemaFault
    const known = await installation.recognize()
    return known?.fault ?? null
  }
  async function check() {
    checkedAtMs = now().getTime()
    fault = await findFault().catch(() => fault)
  }
  return async () => {
    if (fault !== null) await check()
    // Not awaited, because a probe must not fail only because all connections are in use.
    else if (now().getTime() - checkedAtMs >= databaseCheckMs) void check()
    return fault
  }
}
