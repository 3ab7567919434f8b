import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { chown, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import pg from 'pg'

import { freePort } from './free-port.ts'

// A PostgreSQL server for one test, which may crash it, for one measurement or for one test run. Unless it is told
// otherwise, commits are durable, as in production.

const versionsFolder = '/usr/lib/postgresql'
const startMaxMs = 20_000

/** Settings of the server; each replaces the one here or the server's own default. */
type Settings = Record<string, string>

const settings: Settings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  shared_buffers: '64MB',
  // A crash must find changes that are only in the write-ahead log.
  checkpoint_timeout: '1h',
}

/** Starts an empty server on a free port, with its data inside of `parent`; `stop` removes them. */
export async function startThrowawayPostgres(further: Settings = {}, parent = tmpdir()) {
  const programs = await findPrograms()
  const owner = await findOwner()
  const folder = await mkdtemp(join(parent, 'gatehouse-postgres-'))
  if (owner) await chown(folder, owner.uid, owner.gid)
  const data = join(folder, 'data')
  const initialize = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale']
  const port = await freePort()
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  const parameters = Object.entries({ ...settings, ...further }).flatMap(([name, value]) => [
    '-c',
    `${name}=${value}`,
  ])
  let child: ChildProcess | undefined

  async function start() {
    const args = ['-D', data, '-p', String(port), ...parameters]
    const started = spawn(join(programs, 'postgres'), args, {
      ...owner,
      cwd: folder,
      stdio: 'ignore',
    })
    child = started
    await untilConnectable(url, started)
  }
  async function end(signal: NodeJS.Signals) {
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise((resolve) => child?.once('exit', resolve))
    child.kill(signal)
    await ended
  }
  const stop = async () => {
    await end('SIGINT')
    await rm(folder, { recursive: true, force: true })
  }

  try {
    await promisify(execFile)(join(programs, 'initdb'), initialize, { ...owner, cwd: folder })
    await start()
  } catch (error) {
    await stop()
    throw error
  }
  return {
    url,
    port,
    /** The process whose children do the work. */
    pid: () => child?.pid ?? 0,
    start,
    /** Runs one query as an operator would, bypassing the service. */
    query: (text: string) => queryDatabase(url, text),
    /** Like `pg_ctl stop -m immediate`: no checkpoint, no clean shutdown; the next start recovers from the log. */
    crash: () => end('SIGQUIT'),
    stop,
  }
}
export type ThrowawayPostgres = Awaited<ReturnType<typeof startThrowawayPostgres>>

/** Runs one query in a database as an operator would, bypassing the service. */
export async function queryDatabase(url: string, text: string) {
  const client = new pg.Client({ connectionString: url, query_timeout: 60_000 })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query<Record<string, string>>(text)).rows
  } finally {
    await client.end()
  }
}

async function findPrograms(): Promise<string> {
  const names = await namesIn(versionsFolder)
  const versions = names.filter((name) => /^\d+$/.test(name)).toSorted((a, b) => +b - +a)
  for (const version of versions) {
    const programs = join(versionsFolder, version, 'bin')
    const found = await namesIn(programs)
    if (found.includes('initdb') && found.includes('postgres')) return programs
  }
  throw new Error(
    `No initdb and postgres were found in ${versionsFolder}/*/bin. Install PostgreSQL.`,
  )
}

const namesIn = (folder: string) => readdir(folder).catch((): string[] => [])

/** PostgreSQL refuses to run as root: the tests then run it as the account that its package creates. */
async function findOwner() {
  if (process.getuid?.() !== 0) return undefined
  const accounts = await readFile('/etc/passwd', 'utf8')
  const [, uid, gid] = /^postgres:[^:]*:(\d+):(\d+):/m.exec(accounts) ?? []
  if (!uid || !gid) throw new Error('There is no account "postgres" to run PostgreSQL with.')
  return { uid: Number(uid), gid: Number(gid) }
}

async function untilConnectable(url: string, child: ChildProcess) {
  const failures: Error[] = []
  child.once('error', (error) => failures.push(error))
  for (const deadline = Date.now() + startMaxMs; Date.now() < deadline;) {
    const [failure] = failures
    if (failure) throw failure
    if (child.exitCode !== null) throw new Error(`PostgreSQL ended with ${child.exitCode}.`)
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 1000 })
    client.on('error', () => undefined)
    const isUp = await client.connect().then(
      () => true,
      () => false,
    )
    await client.end().catch(() => undefined)
    if (isUp) return
    await sleep(50)
  }
  throw new Error(`PostgreSQL did not answer within ${startMaxMs / 1000} seconds.`)
}
