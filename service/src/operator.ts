import { parseArgs } from 'node:util'

import { Plan } from '@gatehouse/contract/limits'
import { trimmedText } from '@gatehouse/contract/text'

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
import { recordPayment, setPlan } from '#access/organizations/tier.ts'
import { createKeyHasher } from '#access/secret.ts'
import { createAnnouncer } from '#audit/announce.ts'
import { systemClock } from '#platform/clock.ts'
import { connectDatabase } from '#platform/database.ts'

import { loadConfig } from './config.ts'

const usage = `Usage: gatehouse operator organizations <command> [--json]

  create --name <name>       a new organization; prints its first administrator key once
  list [--after <id>]        organizations in order of creation, 100 a page
  suspend <organization id>  every call is refused with 403 within 5 seconds
  reinstate <organization id>
  recover <organization id>  a new administrator key, when all others are lost
  plan <organization id> --plan free|developer|growth|scale
  payment <organization id> --id <payment id> --usd <amount>
                             counts towards the tier; the same id counts once

Needs DATABASE_URL and MASTER_KEYS in the environment, as the service does.
`

/** The operator's mistake: shown with the usage. */
class UsageError extends Error {}

async function run(args: readonly string[]): Promise<string> {
  const { positionals, values } = readArguments(args)
  const [topic, command = '', id = ''] = positionals
  if (values.help || topic === undefined) return usage
  if (topic !== 'organizations') throw new UsageError(`There is no topic '${topic}'.`)
  const result = await withTools((tools) =>
    runCommand(command, { ...values, organizationId: id }, tools),
  )
  return `${values.json ? JSON.stringify(result) : describe(result)}\n`
}

function readArguments(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        name: { type: 'string' },
        after: { type: 'string' },
        plan: { type: 'string' },
        id: { type: 'string' },
        usd: { type: 'string' },
        json: { type: 'boolean' },
        help: { type: 'boolean' },
      },
    })
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : 'The arguments are wrong.')
  }
}

type Tools = Parameters<typeof createOrganization>[1]

async function withTools<T>(work: (tools: Tools) => Promise<T>): Promise<T> {
  // eslint-disable-next-line node/no-process-env
  const config = loadConfig(process.env)
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

type Given = {
  organizationId: string
  name?: string
  after?: string
  plan?: string
  id?: string
  usd?: string
}

async function runCommand(command: string, given: Given, tools: Tools): Promise<object> {
  switch (command) {
    case 'create':
      return created(await createOrganization(readName(given.name), tools))
    case 'list':
      return listed(tools, given.after)
    case 'suspend':
      return changed(readId(given.organizationId), 'suspended', tools)
    case 'reinstate':
      return changed(readId(given.organizationId), 'active', tools)
    case 'recover':
      return recovered(readId(given.organizationId), tools)
    case 'plan':
      return found(given, await setPlan(readId(given.organizationId), readPlan(given.plan), tools))
    case 'payment':
      return found(
        given,
        await recordPayment(readId(given.organizationId), readPayment(given), tools),
      )
    default:
      throw new UsageError(`There is no command '${command}'.`)
  }
}

function readName(name: string | undefined): string {
  const result = trimmedText(1, 80).safeParse(name)
  if (result.success) return result.data
  throw new UsageError('Give the organization a name of 1 to 80 characters: --name "Example Ltd"')
}

function readId(id: string): string {
  if (id) return id
  throw new UsageError('Name the organization: its id, as `list` shows it.')
}

function readPlan(plan: string | undefined): Plan {
  const result = Plan.safeParse(plan)
  if (result.success) return result.data
  throw new UsageError(`Name the plan: --plan ${Plan.options.join('|')}`)
}

/** An amount with at most six decimals, so that it is a whole number of millionths. */
function readPayment({ id, usd }: Given) {
  const isAmount = usd !== undefined && /^\d{1,9}(\.\d{1,6})?$/.test(usd)
  const microUsd = isAmount ? Math.round(Number(usd) * 1_000_000) : 0
  if (id && id.length <= 200 && microUsd > 0) return { id, microUsd }
  throw new UsageError('Say which payment and how much: --id <payment id> --usd 20.00')
}

const created = (made: Awaited<ReturnType<typeof createOrganization>>) => ({
  organization_id: made.organizationId,
  project_id: made.projectId,
  admin_key: made.adminKey,
})

async function listed({ db }: Tools, afterId?: string) {
  const after = afterId === undefined ? undefined : await findOrganizationPosition(db, afterId)
  if (afterId !== undefined && !after) throw noOrganization(afterId)
  const limit = 100
  const rows = await listOrganizations(db, { after, limit, order: 'asc' })
  const data = rows.slice(0, limit).map(present)
  return { data, has_more: rows.length > limit }
}

async function recovered(id: string, tools: Tools) {
  const made = await recoverOrganization(id, tools)
  if (!made) throw noOrganization(id)
  return { organization_id: made.organizationId, admin_key: made.adminKey }
}

async function changed(id: string, status: OrganizationRow['status'], tools: Tools) {
  return found({ organizationId: id }, await setStatus(id, status, tools))
}

function found({ organizationId }: Given, row: OrganizationRow | undefined) {
  if (!row) throw noOrganization(organizationId)
  return present(row)
}

const noOrganization = (id: string) => new Error(`No organization has the id '${id}'.`)

function present(row: OrganizationRow) {
  return {
    id: row.id,
    name: row.name,
    status: row.status,
    plan: row.plan,
    paid_usd: Number(row.paid_micro_usd) / 1_000_000,
    created_at: row.created_at.toISOString(),
  }
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
  process.stdout.write(await run(process.argv.slice(2)))
} catch (error) {
  const message = error instanceof Error ? error.message : String(error)
  process.stderr.write(`operator: ${message}\n${error instanceof UsageError ? `\n${usage}` : ''}`)
  process.exitCode = error instanceof UsageError ? 2 : 1
}
