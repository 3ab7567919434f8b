import { createHash } from 'node:crypto'

import { expect, test } from 'vitest'

import {
  appendLeaves,
  emptyTree,
  hashLeaf,
  hashNodes,
  placesOfProof,
  readTree,
  rootOf,
} from './merkle.ts'

const sha256 = (...parts: Buffer[]) => createHash('sha256').update(Buffer.concat(parts)).digest()

/** The hash of a list of leaves as RFC 6962 defines it, by dividing the list. */
function definedRoot(leaves: readonly Buffer[]): Buffer {
  const [first] = leaves
  if (leaves.length === 1 && first) return first
  let half = 1
  while (half * 2 < leaves.length) half *= 2
  const [left, right] = [leaves.slice(0, half), leaves.slice(half)]
  return sha256(Buffer.from([1]), definedRoot(left), definedRoot(right))
}

/** The path of a leaf as RFC 6962 defines it, from the leaf up. */
function definedPath(index: number, leaves: readonly Buffer[]): Buffer[] {
  if (leaves.length === 1) return []
  let half = 1
  while (half * 2 < leaves.length) half *= 2
  const [left, right] = [leaves.slice(0, half), leaves.slice(half)]
  return index < half
    ? [...definedPath(index, left), definedRoot(right)]
    : [...definedPath(index - half, right), definedRoot(left)]
}

const leavesOf = (count: number) =>
  Array.from({ length: count }, (_, at) => hashLeaf(`record ${at}`))

test('the roots are those of the certificate transparency reference', () => {
  const inputs = ['', '00', '10', '2021', '3031', '40414243', '5051525354555657']
  const leaves = inputs.map((hex) => sha256(Buffer.from([0]), Buffer.from(hex, 'hex')))
  const roots = leaves.map((_, at) =>
    rootOf(appendLeaves(emptyTree, leaves.slice(0, at + 1)).frontier).toString('hex'),
  )
  expect(roots).toEqual([
    '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
    'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
    'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
    'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
    '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
    '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
    'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
  ])
})

test('a tree that grows in batches has the root of one that is divided', () => {
  const leaves = leavesOf(300)
  let tree = emptyTree
  for (let at = 0; at < leaves.length; at += 7) {
    tree = appendLeaves(tree, leaves.slice(at, at + 7))
    expect(rootOf(tree.frontier)).toEqual(definedRoot(leaves.slice(0, tree.size)))
  }
  expect(tree.size).toBe(300)
})

test('the places of a proof are those of its path', () => {
  for (let size = 1; size <= 40; size++) {
    const leaves = leavesOf(size)
    const rootAt = ({ level, index }: { level: number; index: number }) =>
      definedRoot(leaves.slice(index * 2 ** level, (index + 1) * 2 ** level))
    for (let index = 0; index < size; index++) {
      const path = placesOfProof(index, size).map((places) =>
        places.map(rootAt).reduceRight((right, left) => hashNodes(left, right)),
      )
      expect(path).toEqual(definedPath(index, leaves))
    }
  }
})

test('an empty tree has no root', () => {
  expect(() => rootOf([])).toThrow('no root')
})

test('a stored frontier is only read as that of a tree that can have it', () => {
  for (const size of [0, 1, 2, 7, 8, 300]) {
    const tree = appendLeaves(emptyTree, leavesOf(size))
    const bytes = Buffer.concat(tree.frontier)
    expect(readTree(size, bytes)).toEqual(tree)
    expect(() => readTree(size, Buffer.concat([bytes, Buffer.alloc(32)]))).toThrow('frontier')
    expect(() => readTree(size, Buffer.concat([bytes, Buffer.alloc(1)]))).toThrow('frontier')
    expect(() => readTree(size * 2 + 1, bytes)).toThrow('frontier')
  }
})
