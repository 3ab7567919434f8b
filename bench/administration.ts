import { fork } from 'node:child_process'

import { listAdminApiKeys } from '@gatehouse/contract/api-key'
import { readOptions } from '@gatehouse/tools/help/read-options'
import { useBuiltProgram } from '@gatehouse/tools/program'
import { startStack } from '@gatehouse/tools/start-stack'

import { load, type Load } from './load.ts'

// Compares an authenticated list request with a bare Node server that sends the same bytes, in one run on one
// machine. Only the ratios are meaningful; the absolute numbers depend on the machine.

const connections = 16
const seconds = 8

type Measured = Load & { cpuMicroseconds: number }

async function measure(
  target: Parameters<typeof load>[0],
  readCpuMicroseconds: () => Promise<number>,
): Promise<Measured> {
  await load(target, connections, 2)
  const before = await readCpuMicroseconds()
  const result = await load(target, connections, seconds)
  return { ...result, cpuMicroseconds: ((await readCpuMicroseconds()) - before) / result.requests }
}

async function startBareServer(body: string) {
  const file = new URL('targets/bare-server.ts', import.meta.url)
  const child = fork(file, { env: { ...process.env, BODY: body } })
  const url = await new Promise<string>((resolve) =>
    child.once('message', (address) => resolve(address as string)),
  )
  return { url, stop: () => child.disconnect() }
}

const text = async (url: string, headers = {}) => (await fetch(url, { headers })).text()

async function cpuOf(metricsUrl: string): Promise<number> {
  const line = /^process_cpu_seconds_total (\S+)$/m.exec(await text(metricsUrl))
  return Number(line?.[1]) * 1e6
}

function row(name: string, { perSecond, p50Ms, p99Ms, cpuMicroseconds }: Measured): string[] {
  return [
    name,
    perSecond.toFixed(0),
    p50Ms.toFixed(2),
    p99Ms.toFixed(2),
    cpuMicroseconds.toFixed(0),
  ]
}

async function run() {
  readOptions('bench administration', {})
  console.log(`Measuring for ${2 * (seconds + 2)} s with ${connections} connections …\n`)
  await useBuiltProgram()
  const stack = await startStack({ environment: { LOG_LEVEL: 'info' } })
  try {
    const { base_url, admin_key, metrics_urls } = stack.description
    const target = {
      url: `${base_url}${listAdminApiKeys.path}`,
      headers: { authorization: `Bearer ${admin_key}` },
    }
    const bare = await startBareServer(await text(target.url, target.headers))
    const baseline = await measure({ url: bare.url }, async () =>
      Number(await text(`${bare.url}/cpu`)),
    )
    bare.stop()
    const gatehouse = await measure(target, () => cpuOf(metrics_urls[0] ?? ''))
    const table = [
      ['', 'requests/s', 'p50 ms', 'p99 ms', 'CPU µs/request'],
      row('bare Node server', baseline),
      row('Gatehouse, authenticated list', gatehouse),
    ]
    for (const cells of table) {
      console.log(
        cells.map((cell, index) => (index ? cell.padStart(15) : cell.padEnd(30))).join(''),
      )
    }
    const ratio = gatehouse.cpuMicroseconds / baseline.cpuMicroseconds
    console.log(
      `\nGatehouse uses ${ratio.toFixed(1)} times the CPU of the bare server per request.`,
    )
  } finally {
    await stack.stop()
  }
}

await run()
