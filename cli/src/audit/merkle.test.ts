import { expect, test } from 'vitest'

import { createTree, frontierLength, hashLeaf, rootOf, subtreeSizes } from './merkle.ts'
import { completeSubtrees, treeHash } from './testing/signed-log.ts'

/** The leaves and roots with which Certificate Transparency's reference implementations test their trees. */
const referenceLeaves = [
  '',
  '00',
  '10',
  '2021',
  '3031',
  '40414243',
  '5051525354555657',
  '606162636465666768696a6b6c6d6e6f',
]
const referenceRoots = [
  'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
  'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
  '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
  'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
  '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
]

test('the roots of 0 to 8 leaves are those of the reference implementations', () => {
  const tree = createTree()
  const roots = [rootOf(tree.frontier()).toString('hex')]
  for (const leaf of referenceLeaves) {
    // All bytes are below 128, so the text has the same ones.
    tree.append(hashLeaf(Buffer.from(leaf, 'hex').toString('latin1')))
    roots.push(rootOf(tree.frontier()).toString('hex'))
  }
  expect(roots).toEqual(referenceRoots)
})

test('the tree that grows is the tree of the definition, at every size and continued from every size', () => {
  const leaves = Array.from({ length: 130 }, (_, index) => hashLeaf(`leaf ${index}`))
  for (let size = 0; size <= leaves.length; size++) {
    const tree = createTree(size, completeSubtrees(leaves.slice(0, size)))
    expect(tree.frontier().length).toBe(frontierLength(size))
    for (const leaf of leaves.slice(size)) tree.append(leaf)
    expect(tree.size()).toBe(leaves.length)
    expect(rootOf(tree.frontier())).toEqual(treeHash(leaves))
  }
})

test('sizes of more than 32 bits have their subtrees', () => {
  expect(subtreeSizes(2 ** 40 + 5)).toEqual([2 ** 40, 4, 1])
})
