import { createKeyHasher } from '#access/secret.ts'
import { createAnnouncer } from '#audit/announce.ts'
import { recognizeDatabase, unprovedKeys } from '#installation/installation.ts'
import { systemClock } from '#platform/clock.ts'
import { connectDatabase } from '#platform/database.ts'
import { requireCompatibleSchema } from '#platform/migrations.ts'
import { createSecretBox } from '#platform/secrets.ts'

import { loadOperatorConfig } from './config.ts'
import {
  type Command,
  type CommandOutput,
  type OperatorDeps,
  UsageError,
} from './operator/command.ts'
import { topics } from './operator/commands.ts'
import { explainCommandFailure, requireSettings } from './operator/explain-failure.ts'
import { helpForAll, helpForOne, usageOf } from './operator/help.ts'
import { readArguments } from './operator/read-arguments.ts'

// The commands of `gatehouse operator`. A command runs and exits.

type ProcessOutput = { exitCode: 0 | 1 | 2; stdout: string; stderr: string }

async function run(argv: readonly string[]): Promise<ProcessOutput> {
  try {
    const given = readArguments(argv, topics)
    if (!given) return print(helpForAll(topics))
    const { topic, command, args, isJson, isHelp } = given
    if (isHelp) return print(helpForOne(topic, command))
    const execute = command.prepare(args)
    const output = await withDeps(execute, command)
    const { result, text = describe(result), failure, exitCode = 0 } = output
    const stdout = isJson ? `${JSON.stringify(result)}\n` : text
    return { exitCode, stdout, stderr: failure === undefined ? '' : `operator: ${failure}\n` }
  } catch (error) {
    const message = `operator: ${explainCommandFailure(error)}\n`
    if (!(error instanceof UsageError)) return { exitCode: 1, stdout: '', stderr: message }
    return { exitCode: 2, stdout: '', stderr: `${message}${findUsage(argv)}` }
  }
}

const print = (stdout: string): ProcessOutput => ({ exitCode: 0, stdout, stderr: '' })

async function withDeps(
  execute: (deps: OperatorDeps) => Promise<CommandOutput>,
  { needsProvedKey = false }: Command,
) {
  // eslint-disable-next-line node/no-process-env
  const environment = process.env
  requireSettings(['DATABASE_URL', 'MASTER_KEYS'], environment)
  const config = loadOperatorConfig(environment)
  const db = connectDatabase({ url: config.DATABASE_URL, poolSize: 2 })
  const now = systemClock
  try {
    const { missing } = await requireCompatibleSchema(db)
    const known = missing.length === 0 && (await recognizeDatabase(db, config.MASTER_KEYS))
    if (known && known.fault !== null) throw new Error(known.fault)
    if (known && !known.isProved && needsProvedKey) throw new Error(unprovedKeys)
    // Sends no hint to the processes, because they poll at least once a second.
    const announce = createAnnouncer(now, () => undefined)
    const hashKey = createKeyHasher(config.MASTER_KEYS)
    const secretBox = createSecretBox(config.MASTER_KEYS)
    const openPatientDb = () =>
      connectDatabase({ url: config.DATABASE_URL, poolSize: 2, statementTimeoutMs: 0 })
    const { PUBLIC_URL: publicUrl, SIGN_IN_WITH_KEYS: isWithKeys } = config
    const tools = { openPatientDb, now, hashKey, secretBox, announce, publicUrl, isWithKeys }
    return await execute({ db, ...tools })
  } finally {
    await db.destroy()
  }
}

/** The usage of the command whose arguments are wrong, or else where to find all commands. */
function findUsage([topic = '', name = '']: readonly string[]): string {
  const command = Object.hasOwn(topics, topic) && topics[topic]
  const known = command && Object.hasOwn(command, name) ? command[name] : undefined
  if (known) return usageOf(topic, known)
  return 'Usage: gatehouse operator <topic> <command> [flags]; --help lists all commands.\n'
}

/** One line for each member, for people. */
function describe(result: object): string {
  const lines = Object.entries(result).map(([name, value]) => `${name}: ${String(value)}`)
  const note = 'admin_key' in result ? ['Keep the key: it is not shown again.'] : []
  return `${[...lines, ...note].join('\n')}\n`
}

const { exitCode, stdout, stderr } = await run(process.argv.slice(2))
process.stdout.write(stdout)
process.stderr.write(stderr)
// Not `process.exit`, which would lose output that has not been written to a pipe yet.
process.exitCode = exitCode
