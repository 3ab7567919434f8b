import { connect } from 'node:net'

import { createClient } from '@gatehouse/contract/client'
import { readLimits } from '@gatehouse/contract/limits'

import { readOptions, refuse } from './help/read-options.ts'
import { useBuiltProgram } from './program.ts'
import { panelOf } from './stack-panel.ts'
import { type Stack, startStack } from './start-stack.ts'
import { redisUrl } from './throwaway-database.ts'

function readStackOptions() {
  const { values } = readOptions('stack', {
    options: {
      json: { type: 'boolean', default: false },
      processes: { type: 'string', default: '1' },
      upstream: { type: 'string', default: 'scripted' },
      sources: { type: 'boolean', default: false },
    },
  })
  const processes = Number(values.processes)
  if (!Number.isInteger(processes) || processes < 1 || processes > 16) {
    refuse('stack', '--processes takes a whole number from 1 to 16.')
  }
  if (!['scripted', 'llama'].includes(values.upstream)) {
    refuse('stack', '--upstream takes scripted or llama.')
  }
  return { ...values, processes, hasLlama: values.upstream === 'llama' }
}

/** Enough for the highest tier. A payment also adds as many credits. */
const paidUsd = '5000'

async function run(signals: Signals) {
  const { processes, hasLlama, json, sources } = readStackOptions()
  if (!json) console.log('Starting Gatehouse …')
  await requireRedis()
  if (!sources) await useBuiltProgram()
  const { startSignal: signal } = signals
  const stack = await startStack({ processes, hasLlama, hasLimits: true, paidUsd, signal })
  const interrupted = signals.next()
  try {
    console.log(json ? JSON.stringify(stack.description) : await describeStack(stack, hasLlama))
    await interrupted
    if (!json) console.log('Stopping … (Ctrl-C again kills the processes)')
  } finally {
    void signals.next().then(() => killProcesses(stack))
    await stack.stop()
    for (const leftover of stack.leftovers) report(leftover)
  }
}

async function describeStack(stack: Stack, hasLlama: boolean): Promise<string> {
  const { base_url: baseUrl, admin_key: credential } = stack.description
  const limits = await createClient({ baseUrl, credential }).call(readLimits, {})
  return panelOf(stack, { limits, creditsUsd: paidUsd, hasLlama })
}

/** The service also starts without Redis, but then counts limits in memory, which this stack should not show. */
async function requireRedis() {
  if (!URL.canParse(redisUrl)) throw new Error('TEST_REDIS_URL is not a URL.')
  const { hostname: host, port } = new URL(redisUrl)
  const socket = connect({ host, port: Number(port || 6379), timeout: 3000 })
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve).once('error', reject)
      socket.once('timeout', () => reject(new Error('no answer')))
    })
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException
    const address = `${host}:${port || 6379}`
    throw new Error(
      `Redis at ${address} cannot be used (${message || code}). Start it, or set TEST_REDIS_URL to another server.`,
      { cause: error },
    )
  } finally {
    socket.destroy()
  }
}

function killProcesses({ apis, worker }: Stack) {
  for (const { child } of [...apis, worker]) child.kill('SIGKILL')
}

type Signals = { startSignal: AbortSignal; next: () => Promise<void> }

/** SIGINT and SIGTERM abort the start; `next` resolves at the next of them. */
function listenToSignals(): Signals {
  const start = new AbortController()
  const waiting: (() => void)[] = []
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      start.abort(new Error(`The start was interrupted by ${signal}.`))
      for (const resolve of waiting.splice(0)) resolve()
    })
  }
  return {
    startSignal: start.signal,
    next: () => new Promise((resolve) => waiting.push(resolve)),
  }
}

function report(error: unknown) {
  console.error(`stack: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
}

await run(listenToSignals()).catch(report)
// Exits explicitly, because a socket that stays open must not keep a failed start alive.
process.exit()
