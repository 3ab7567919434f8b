import { Agent, request } from 'node:http'

export type Load = { perSecond: number; p50Ms: number; p99Ms: number; requests: number }

type Target = { url: string; headers?: Record<string, string> }

/** Keeps `connections` requests in flight for `seconds`; an answer other than 200 ends the run. */
export async function load(target: Target, connections: number, seconds: number): Promise<Load> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const endAt = performance.now() + seconds * 1000
  const times: number[] = []
  const startedAt = performance.now()
  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (performance.now() < endAt) times.push(await once(target, agent))
    }),
  )
  const elapsedSeconds = (performance.now() - startedAt) / 1000
  agent.destroy()
  times.sort((left, right) => left - right)
  const at = (quantile: number) => times[Math.floor(times.length * quantile)] ?? 0
  return {
    requests: times.length,
    perSecond: times.length / elapsedSeconds,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
  }
}

function once({ url, headers = {} }: Target, agent: Agent): Promise<number> {
  const startedAt = performance.now()
  return new Promise((resolve, reject) => {
    request(url, { agent, headers }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`${url} answered ${response.statusCode}`))
      response.resume().once('end', () => resolve(performance.now() - startedAt))
    })
      .once('error', reject)
      .end()
  })
}
