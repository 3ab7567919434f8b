import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { freePort } from '@gatehouse/tools/free-port'
import { readOptions, refuse } from '@gatehouse/tools/help/read-options'
import { programFile, useBuiltProgram } from '@gatehouse/tools/program'
import { stopProcess, untilReady } from '@gatehouse/tools/service-process'
import { startStack } from '@gatehouse/tools/start-stack'

import { median } from './cpu/cpu-table.ts'
import { createCpuMeter, memoryMegabytes } from './process-usage.ts'
import { pidOf } from './targets/child.ts'

type Started = { readyMs: number; cpuMs: number; restMb: number }
type Way = { name: string; file: string; environment: Record<string, string> }

const restMs = 10_000

async function measureStart(way: Way, service: Record<string, string>): Promise<Started> {
  const state = await mkdtemp(join(tmpdir(), 'gatehouse-start-'))
  const [port, operationsPort] = [await freePort(), await freePort()]
  const startedAt = performance.now()
  // Without a channel to it, as an operator starts it.
  const child = spawn(process.execPath, [way.file, 'serve'], {
    env: {
      ...service,
      ROLES: 'api',
      PORT: String(port),
      OPERATIONS_PORT: String(operationsPort),
      STATE_DIRECTORY: state,
      ...way.environment,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  try {
    const pid = pidOf(child)
    const readCpu = createCpuMeter([pid])
    const metricsUrl = `http://127.0.0.1:${operationsPort}/metrics`
    await untilReady({ baseUrl: `http://127.0.0.1:${port}`, metricsUrl, child })
    const readyMs = performance.now() - startedAt
    const cpuMs = (await readCpu()) / 1000
    await sleep(restMs)
    return { readyMs, cpuMs, restMb: await memoryMegabytes([pid]) }
  } finally {
    // Not killed: earlier releases write their compile cache when they end.
    await stopProcess(child, 'SIGTERM')
    await rm(state, { recursive: true, force: true })
  }
}

const describe = (name: string, starts: readonly Started[]) => {
  const least = (read: (start: Started) => number) => Math.min(...starts.map(read)).toFixed(0)
  const usual = (read: (start: Started) => number) => median(starts.map(read)).toFixed(0)
  return `${name}: CPU to ready ${least(({ cpuMs }) => cpuMs)} ms (median ${usual(({ cpuMs }) => cpuMs)}), ready after ${least(({ readyMs }) => readyMs)} ms, at rest ${usual(({ restMb }) => restMb)} MB`
}

async function run() {
  const { values } = readOptions('bench start', {
    options: { rounds: { type: 'string', default: '5' }, against: { type: 'string' } },
  })
  const rounds = Number(values.rounds)
  if (!Number.isInteger(rounds) || rounds < 1) refuse('bench start', '--rounds takes a number.')
  const sources = values.against ?? programFile('gatehouse')
  await useBuiltProgram()
  const cache = await mkdtemp(join(tmpdir(), 'gatehouse-cache-'))
  const stack = await startStack()
  try {
    const ways: Way[] = [
      { name: 'sources', file: sources, environment: { NODE_COMPILE_CACHE: cache } },
      { name: 'built', file: programFile('gatehouse'), environment: {} },
    ]
    // The first start fills the cache.
    for (const way of ways) await measureStart(way, stack.service)
    const starts = ways.map((): Started[] => [])
    for (let round = 0; round < rounds; round++) {
      for (const [index, way] of ways.entries()) {
        starts[index]?.push(await measureStart(way, stack.service))
      }
    }
    for (const [index, { name }] of ways.entries()) console.log(describe(name, starts[index] ?? []))
    const [before = [], after = []] = starts
    const cpu = (all: readonly Started[]) => Math.min(...all.map(({ cpuMs }) => cpuMs))
    console.log(
      `CPU of a built start, of that from sources: ${(cpu(after) / cpu(before)).toFixed(2)}`,
    )
  } finally {
    await stack.stop()
    await rm(cache, { recursive: true, force: true })
  }
}

try {
  await run()
} catch (error) {
  console.error(`bench: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
}
