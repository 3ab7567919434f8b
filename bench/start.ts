import { type ChildProcess, fork } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { readOptions, refuse } from '@gatehouse/tools/help/read-options'
import { programFile, useBuiltProgram } from '@gatehouse/tools/program'
import { stopProcess, untilReady, untilStarted } from '@gatehouse/tools/service-process'
import { startStack } from '@gatehouse/tools/start-stack'

import { median } from './cpu/cpu-table.ts'
import { createCpuMeter, memoryMegabytes } from './process-usage.ts'
import { pidOf } from './targets/child.ts'

type Started = { readyMs: number; cpuMs: number; restMb: number }
type Way = { name: string; file: string; execArgv: string[]; environment: Record<string, string> }

const restMs = 10_000

async function measureStart(way: Way, service: Record<string, string>): Promise<Started> {
  const state = await mkdtemp(join(tmpdir(), 'gatehouse-start-'))
  const env = { ...service, ROLES: 'api', STATE_DIRECTORY: state, ...way.environment }
  const startedAt = performance.now()
  const child: ChildProcess = fork(way.file, ['serve'], {
    env,
    execArgv: way.execArgv,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  try {
    const pid = pidOf(child)
    const readCpu = createCpuMeter([pid])
    const { address = '', operationsAddress = '' } = (await untilStarted(child, {
      name: way.name,
    })) as Record<string, string>
    await untilReady({ baseUrl: address, metricsUrl: `${operationsAddress}/metrics`, child })
    const readyMs = performance.now() - startedAt
    const cpuMs = (await readCpu()) / 1000
    await sleep(restMs)
    return { readyMs, cpuMs, restMb: await memoryMegabytes([pid]) }
  } finally {
    await stopProcess(child, 'SIGKILL')
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
      { name: 'sources', file: sources, execArgv: [], environment: { NODE_COMPILE_CACHE: cache } },
      {
        name: 'built',
        file: programFile('gatehouse'),
        execArgv: ['--max-semi-space-size=16'],
        environment: {},
      },
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
