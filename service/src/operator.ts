import {
  findOrganizationPosition,
  listOrganizations,
  type OrganizationRow,
} from '#access/organizations/organization-store.ts'
import {
  createOrganization,
  recoverOrganization,
  setStatus,
} from '#access/organizations/organizations.ts'
import { setPlan } from '#access/organizations/tier.ts'
import { createKeyHasher } from '#access/secret.ts'
import { createAnnouncer } from '#audit/announce.ts'
import { systemClock } from '#platform/clock.ts'
import { connectDatabase } from '#platform/database.ts'

import { loadOperatorConfig } from './config.ts'
import {
  type Given,
  readArguments,
  readName,
  readOrganizationId,
  readPlan,
  readWelcome,
  refuseSurplus,
  usage,
  UsageError,
} from './operator-arguments.ts'
import {
  granted,
  noOrganization,
  paid,
  presentOrganization,
  presentWithPlans,
  refunded,
  runCreditCommand,
  shown,
  welcome,
} from './operator-credits.ts'

async function run(args: readonly string[]): Promise<{ text: string; exitCode: 0 | 1 }> {
  const given = readArguments(args)
  const { positionals, values } = given
  const [topic, command = '', id = ''] = positionals
  if (values.help || topic === undefined) return { text: usage, exitCode: 0 }
  refuseSurplus(given)
  return withTools(async (tools) => {
    if (topic === 'credits') {
      const { result, text, exitCode } = await runCreditCommand(command, id, tools)
      return { text: values.json ? `${JSON.stringify(result)}\n` : text, exitCode }
    }
    const result = await runCommand(command, { ...values, organizationId: id }, tools)
    const isHalfDone = 'credits_granted' in result && result.credits_granted === false
    const text = values.json ? JSON.stringify(result) : describe(result)
    return { text: `${text}\n`, exitCode: isHalfDone ? 1 : 0 }
  })
}

type Tools = Parameters<typeof createOrganization>[1]

async function withTools<T>(work: (tools: Tools) => Promise<T>): Promise<T> {
  // eslint-disable-next-line node/no-process-env
  const config = loadOperatorConfig(process.env)
  const db = connectDatabase({ url: config.DATABASE_URL, poolSize: 2 })
  const now = systemClock
  try {
    // No hint is sent from here: every process polls at least once a second.
    const announce = createAnnouncer(now, () => undefined)
    return await work({ db, now, hashKey: createKeyHasher(config.MASTER_KEYS), announce })
  } finally {
    await db.destroy()
  }
}

async function runCommand(command: string, given: Given, tools: Tools): Promise<object> {
  switch (command) {
    case 'create':
      return created(given, tools)
    case 'list':
      return listed(tools, given.after)
    case 'show':
      return shown(given, tools)
    case 'suspend':
      return found(given, await setStatus(readOrganizationId(given), 'suspended', tools))
    case 'reinstate':
      return found(given, await setStatus(readOrganizationId(given), 'active', tools))
    case 'recover':
      return recovered(readOrganizationId(given), tools)
    case 'plan':
      return planned(given, tools)
    case 'payment':
      return paid(given, tools)
    case 'grant':
      return granted(given, tools)
    case 'refund':
      return refunded(given, tools)
    default:
      throw new UsageError(`There is no command '${command}'.`)
  }
}

async function created(given: Given, tools: Tools) {
  const credits = readWelcome(given)
  const made = await createOrganization(readName(given.name), tools)
  const credited = await welcome(made.organizationId, credits, tools)
  return {
    organization_id: made.organizationId,
    project_id: made.projectId,
    admin_key: made.adminKey,
    ...credited,
  }
}

async function listed({ db }: Tools, afterId?: string) {
  const after = afterId === undefined ? undefined : await findOrganizationPosition(db, afterId)
  if (afterId !== undefined && !after) throw noOrganization(afterId)
  const limit = 100
  const rows = await listOrganizations(db, { after, limit, order: 'asc' })
  const data = rows.slice(0, limit).map(presentOrganization)
  return { data, has_more: rows.length > limit }
}

async function recovered(id: string, tools: Tools) {
  const made = await recoverOrganization(id, tools)
  if (!made) throw noOrganization(id)
  return { organization_id: made.organizationId, admin_key: made.adminKey }
}

async function planned(given: Given, tools: Tools) {
  const id = readOrganizationId(given)
  const row = await setPlan(id, readPlan(given), tools)
  if (!row) throw noOrganization(id)
  return presentWithPlans(row)
}

function found({ organizationId }: Given, row: OrganizationRow | undefined) {
  if (!row) throw noOrganization(organizationId)
  return presentOrganization(row)
}

/** What a person reads: a line per member, or per item of a list. */
function describe(result: object): string {
  if ('data' in result && Array.isArray(result.data)) {
    const lines = result.data.map((item: object) => Object.values(item).join('  '))
    const more =
      'has_more' in result && result.has_more ? ['(more: use --after with the last id)'] : []
    return [...lines, ...more].join('\n') || 'There are no organizations yet.'
  }
  const lines = Object.entries(result).map(([name, value]) => `${name}: ${String(value)}`)
  const note = 'admin_key' in result ? ['Keep the key: it is not shown again.'] : []
  return [...lines, ...note].join('\n')
}

try {
  const { text, exitCode } = await run(process.argv.slice(2))
  process.stdout.write(text)
  process.exitCode = exitCode
} catch (error) {
  const message = error instanceof Error ? error.message : String(error)
  process.stderr.write(`operator: ${message}\n${error instanceof UsageError ? `\n${usage}` : ''}`)
  process.exitCode = error instanceof UsageError ? 2 : 1
}
