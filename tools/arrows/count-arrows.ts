import { readFile } from 'node:fs/promises'
import { dirname, join, normalize } from 'node:path'

import { listSourceFiles, repositoryRoot } from '../source-files.ts'

// An arrow is a dependency between two items of a folder, where an item is a file or a subfolder directly in it.
// Several imports between the same two items are one arrow. An arrow that closes a cycle points upwards.

type Arrow = readonly [from: string, to: string]

async function arrowsInside(folder: string, files: readonly string[]): Promise<Arrow[]> {
  const itemOf = (path: string) => path.slice(folder.length + 1).split('/')[0] ?? ''
  const arrows = new Map<string, Arrow>()
  for (const file of files.filter((path) => path.startsWith(`${folder}/`))) {
    const text = await readFile(join(repositoryRoot, file), 'utf8')
    for (const [, specifier = ''] of text.matchAll(/from '([#.][^']+)'/g)) {
      const target = specifier.startsWith('#')
        ? `service/src/${specifier.slice(1)}`
        : normalize(join(dirname(file), specifier))
      if (!target.startsWith(`${folder}/`) || itemOf(target) === itemOf(file)) continue
      arrows.set(`${itemOf(file)} ${itemOf(target)}`, [itemOf(file), itemOf(target)])
    }
  }
  return [...arrows.values()]
}

/** Importers first: where there is no cycle, no arrow points upwards. */
function sortByImports(arrows: readonly Arrow[]): string[] {
  const arrowsOf = Map.groupBy(arrows, ([from]) => from)
  const seen = new Set<string>()
  const sorted: string[] = []
  function visit(item: string) {
    if (seen.has(item)) return
    seen.add(item)
    for (const [, to] of arrowsOf.get(item) ?? []) visit(to)
    sorted.unshift(item)
  }
  for (const [from] of arrows) visit(from)
  return sorted
}

/** The number of upward arrows in the best order of the items, which is found by moving one item at a time. */
function countUpward(arrows: readonly Arrow[]): number {
  const order = sortByImports(arrows)
  const upward = (items: readonly string[]) => {
    const rank = new Map(items.map((item, index) => [item, index]))
    return arrows.filter(([from, to]) => (rank.get(from) ?? 0) > (rank.get(to) ?? 0)).length
  }
  let [best, fewest] = [order, upward(order)]
  for (let hasMoved = true; hasMoved && fewest > 0;) {
    hasMoved = false
    for (const item of order) {
      const rest = best.filter((each) => each !== item)
      for (let index = 0; index <= rest.length; index++) {
        const tried = rest.toSpliced(index, 0, item)
        const count = upward(tried)
        if (count < fewest) [best, fewest, hasMoved] = [tried, count, true]
      }
    }
  }
  return fewest
}

/** Counts the arrows between the items of a folder of the service, and those that point upwards. */
export async function countArrows(name: string) {
  const arrows = await arrowsInside(`service/src/${name}`, await listSourceFiles())
  return { arrows: arrows.length, upward: countUpward(arrows) }
}
