import type { ASTNode } from '@marcbachmann/cel-js'

/**
 * Writes a part of an accepted expression as an expression of its own. Every operation gets brackets, so that nothing
 * depends on precedence; values are copied from the source. (The library's own printer loses brackets and digits.)
 */
export function printPart(node: ASTNode): string {
  const printAll = (nodes: readonly ASTNode[]) => nodes.map(printPart).join(', ')
  switch (node.op) {
    case 'value':
      return node.input.slice(node.start, node.end)
    case 'id':
      return node.args
    case 'list':
      return `[${printAll(node.args)}]`
    case 'call':
      return `${node.args[0]}(${printAll(node.args[1])})`
    case 'rcall':
      return `(${printPart(node.args[1])}).${node.args[0]}(${printAll(node.args[2])})`
    case '[]':
      return `(${printPart(node.args[0])})[${printPart(node.args[1])}]`
    case '!_':
      return `(!${printPart(node.args)})`
    case '-_':
      return `(-${printPart(node.args)})`
    case '?:': {
      const [condition, one, other] = node.args
      return `(${printPart(condition)} ? ${printPart(one)} : ${printPart(other)})`
    }
    case '.':
    case '.?':
    case '[?]':
    case 'map':
      throw new Error(`An accepted expression has no '${node.op}'.`)
    default:
      return `(${printPart(node.args[0])} ${node.op} ${printPart(node.args[1])})`
  }
}
