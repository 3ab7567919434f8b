/** The output of V8's profiler; each node is a function at one position in the call tree. */
export type Profile = {
  nodes: {
    id: number
    callFrame: { functionName: string; url: string; lineNumber: number }
    children?: number[]
  }[]
  samples: number[]
  timeDeltas: number[]
}

type Node = Profile['nodes'][number]
type FunctionTime = { name: string; file: string; self: number; total: number }

const functionsShown = 25

/** Times are in microseconds per request, without idle time and that of the profiler itself. */
export function reportOf(profile: Profile, requests: number): string {
  const functions = timeByFunction(profile).filter(
    ({ name, file }) => name !== '(idle)' && file !== 'node:inspector',
  )
  const all = functions.reduce((sum, { self }) => sum + self, 0)
  const line = (microseconds: number, text: string) => {
    const share = `${((100 * microseconds) / all).toFixed(1)} %`
    return `${(microseconds / requests).toFixed(1).padStart(8)} µs ${share.padStart(7)}  ${text}`
  }
  const bySelf = functions.toSorted((left, right) => right.self - left.self)
  const top = bySelf.slice(0, functionsShown)
  const ours = functions
    .filter(({ file }) => file.startsWith('service/'))
    .toSorted((left, right) => right.total - left.total)
  return [
    line(all, 'all'),
    '\nSelf time by file or package:',
    ...sumByFile(functions).map(([file, self]) => line(self, file)),
    '\nThe functions with the most self time, by file:',
    ...groupByFile(top).flatMap(([file, own]) => [
      `  ${file}`,
      ...own.map(({ self, name }) => line(self, name)),
    ]),
    '\nOur functions with the most time, callees included:',
    ...ours
      .slice(0, functionsShown)
      .map(({ total, name, file }) => line(total, `${name}  ${file}`)),
  ].join('\n')
}

function timeByFunction({ nodes, samples, timeDeltas }: Profile): FunctionTime[] {
  const selfOf = new Map<number, number>()
  for (const [index, id] of samples.entries()) {
    selfOf.set(id, (selfOf.get(id) ?? 0) + (timeDeltas[index] ?? 0))
  }
  const nodeOf = new Map(nodes.map((node) => [node.id, node]))
  const times = new Map<string, FunctionTime>()
  /** Returns the time of a subtree; a recursive function counts only once in its total. */
  const walk = (node: Node, above: ReadonlySet<string>): number => {
    const { functionName, url, lineNumber } = node.callFrame
    const file = shorten(url)
    const name = `${functionName || '(anonymous)'}${url ? `:${lineNumber + 1}` : ''}`
    const key = `${file} ${name}`
    const own = times.get(key) ?? { name, file, self: 0, total: 0 }
    times.set(key, own)
    const below = above.has(key) ? above : new Set([...above, key])
    const self = selfOf.get(node.id) ?? 0
    own.self += self
    let total = self
    for (const id of node.children ?? []) {
      const child = nodeOf.get(id)
      if (child) total += walk(child, below)
    }
    if (!above.has(key)) own.total += total
    return total
  }
  const [root] = nodes
  if (root) walk(root, new Set())
  return [...times.values()]
}

/** Our files by their path, packages by their name. */
export function shorten(url: string): string {
  if (url === '') return 'V8 and native code'
  const inside = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\/(.*)$/.exec(url)
  if (inside) return `${inside[1]}/${inside[2]}`
  return url.replace(/^file:.*?\/(service|contract|bench)\//, '$1/')
}

/** All files of a package are one group, and so are those of Node. */
const groupOf = (file: string) => {
  if (file.startsWith('node:')) return 'Node'
  if (/^(service|contract|V8)/.test(file)) return file
  return /^(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? file
}

function sumByFile(functions: readonly FunctionTime[]): [string, number][] {
  const sums = new Map<string, number>()
  for (const { file, self } of functions) {
    sums.set(groupOf(file), (sums.get(groupOf(file)) ?? 0) + self)
  }
  return [...sums].toSorted((left, right) => right[1] - left[1]).slice(0, functionsShown)
}

const groupByFile = (functions: readonly FunctionTime[]) => [
  ...Map.groupBy(functions, ({ file }) => file).entries(),
]
