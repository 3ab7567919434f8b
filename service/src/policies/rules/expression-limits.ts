import type { ASTNode } from '@marcbachmann/cel-js'

import { type EntityKind, entityKinds, isEntityKind } from '#redaction/entity.ts'
import { normalise } from '#text/normalise.ts'

import { Complaint } from './complaint.ts'
import { isNewerName, isTextName, type TextVariable, variables } from './facts.ts'
import { scoredAs } from './score.ts'

export const treeLimits = {
  maxAstNodes: 400,
  maxDepth: 24,
  maxListElements: 200,
  maxMapEntries: 0,
  maxCallArguments: 8,
}

const patternsMax = 64
/** Looking for one long text in another can take V8 a time that grows with the product of their lengths. */
const plainTextMaxLength = 256
const literalMaxLength = 1000
/** Elements of a list times the nodes that are evaluated for each. */
const loopStepsMax = 2000
const categoriesAssumed = 50
const intMax = 2n ** 63n

const textMethods = ['matches', 'contains', 'containsAny', 'size']
const plainMethods = ['startsWith', 'endsWith', 'contains', 'size', 'lowerAscii', 'upperAscii']
const functions = ['size', 'int', 'double', 'string', 'bool']
const loops = ['all', 'exists', 'exists_one', 'map', 'filter']

const categories = ['harassment', 'hate', 'illicit', 'sexual', 'self-harm', 'sexual/minors']
const selfHarmKind = /^self-harm\/[a-z]+(?:-[a-z]+)*$/

/** What an expression looks for. */
export type Wants = {
  /** With the place where each is written. */
  patterns: { pattern: string; offset: number }[]
  /** The literals as they are written, and in the normalised form in which they are looked for. */
  literals: Map<string, string>
  /** The variables of type Text that it reads. */
  texts: Set<TextVariable>
  asksSize: boolean
  /** Those whose scores it reads. */
  categories: Set<string>
  /** The kinds of personal data and secrets that it counts. */
  entities: Set<EntityKind>
}

type Visit = { wants: Wants; loopVariable: string | null }
type NodeOf<Op extends ASTNode['op']> = Extract<ASTNode, { op: Op }>

/**
 * Walks an expression and allows what is on its lists; throws a complaint about anything else. The library has no limit
 * at run time, so nothing may remain that takes long, runs a pattern in V8, or reads a member of our objects.
 */
export function collectWants(tree: ASTNode): Wants {
  const wants: Wants = {
    patterns: [],
    literals: new Map(),
    texts: new Set(),
    asksSize: false,
    categories: new Set(),
    entities: new Set(),
  }
  visit(tree, { wants, loopVariable: null })
  return wants
}

function visit(node: ASTNode, context: Visit): void {
  switch (node.op) {
    case 'value':
      return visitValue(node)
    case 'id':
      return visitName(node, context)
    case 'call':
      return visitCall(node, context)
    case 'rcall':
      return visitMethod(node, context)
    case 'list':
      return visitAll(node.args, context)
    case '[]':
      if (!isListOrCategories(node.args[0])) refuse(node, 'only a list has elements')
      return visitAll(node.args, context)
    case '!_':
    case '-_':
      return visit(node.args, context)
    case '.':
    case '.?':
      return refuse(node, `there is no member '${node.args[1]}'; no value has members`)
    case '[?]':
      return refuse(node, 'there are no optional elements')
    case 'map':
      return refuse(node, 'an expression cannot contain a map')
    case '+':
      if (context.loopVariable) refuse(node, "'+' cannot be used inside a loop such as 'exists'")
      return visitAll(node.args, context)
    default:
      return visitAll(node.args, context)
  }
}

const visitAll = (nodes: readonly ASTNode[], context: Visit) => {
  for (const node of nodes) visit(node, context)
}

function refuse(node: ASTNode, what: string): never {
  throw new Complaint(what, node.start)
}

function visitValue(node: NodeOf<'value'>) {
  const value = node.args
  switch (typeof value) {
    case 'boolean':
    case 'number':
      return
    case 'bigint':
      if (value > intMax) refuse(node, `${value} is too large a number`)
      return
    case 'string':
      if (value.length > plainTextMaxLength) {
        refuse(node, `a text in quotes has at most ${plainTextMaxLength} characters here`)
      }
      return
    default:
      refuse(node, 'a value is a text in quotes, a number, true or false')
  }
}

function visitName(node: NodeOf<'id'>, { loopVariable }: Visit) {
  const name = node.args
  if (name === loopVariable) return
  if (isTextName(name)) {
    refuse(node, `'${name}' can only be used with .${textMethods.join('(), .')}()`)
  }
  if (!Object.hasOwn(variables, name)) {
    refuse(node, `there is no variable '${name}'`)
  }
}

function visitCall(node: NodeOf<'call'>, context: Visit) {
  const [name, args] = node.args
  if (name === 'score') {
    const category = onlyText(args) ?? ''
    if (!categories.includes(category) && !selfHarmKind.test(category)) {
      refuse(args[0] ?? node, `'score' needs one of "${categories.join('", "')}"`)
    }
    context.wants.categories.add(scoredAs(category))
  } else if (name === 'pii') {
    const kind = onlyText(args) ?? ''
    if (!isEntityKind(kind)) {
      refuse(args[0] ?? node, `'pii' needs one of "${entityKinds.join('", "')}"`)
    }
    context.wants.entities.add(kind)
    context.wants.texts.add('text')
  } else {
    if (!functions.includes(name)) refuse(node, `there is no function '${name}'`)
    visitAll(args, context)
  }
}

function visitMethod(node: NodeOf<'rcall'>, context: Visit) {
  const [name, receiver, args] = node.args
  if (receiver.op === 'id' && isTextName(receiver.args) && receiver.args !== context.loopVariable) {
    context.wants.texts.add(receiver.args)
    return visitTextMethod(node, context.wants)
  }
  if (loops.includes(name)) return visitLoop(node, context)
  if (name === 'matches' || name === 'containsAny') {
    refuse(node, `'${name}' works on 'text' and other texts of a call only`)
  }
  if (!plainMethods.includes(name)) refuse(node, `there is no method '${name}'`)
  const computed = args.find(({ op }) => op !== 'value' && op !== 'id')
  if (computed) refuse(computed, `'${name}' needs a text in quotes or a variable`)
  visitAll([receiver, ...args], context)
}

function visitTextMethod(node: NodeOf<'rcall'>, wants: Wants) {
  const [name, , args] = node.args
  const place = args[0] ?? node
  if (name === 'matches') {
    const pattern = onlyText(args)
    if (pattern === null) refuse(place, "'matches' needs a pattern written as a text in quotes")
    wants.patterns.push({ pattern, offset: place.start })
    if (wants.patterns.length > patternsMax) {
      refuse(place, `a rule has at most ${patternsMax} patterns`)
    }
  } else if (name === 'contains') {
    const literal = onlyText(args)
    if (literal === null) refuse(place, "'contains' needs a text in quotes")
    addLiteral(wants, literal, place)
  } else if (name === 'containsAny') {
    const texts = textsOfList(args)
    if (!texts) refuse(place, "'containsAny' needs a list of texts in quotes, at least one")
    for (const [text, element] of texts) addLiteral(wants, text, element)
  } else if (name !== 'size') {
    refuse(node, `a text has no method '${name}'; it has ${textMethods.join(', ')}`)
  } else if (args.length > 0) {
    refuse(place, "'size' needs nothing in its brackets")
  } else {
    wants.asksSize = true
  }
}

function addLiteral(wants: Wants, written: string, place: ASTNode) {
  const { text } = normalise(written)
  if (text === '') refuse(place, 'a text to look for must not be empty')
  if (text.length > literalMaxLength) {
    refuse(place, `a text to look for has at most ${literalMaxLength} characters`)
  }
  wants.literals.set(written, text)
}

function visitLoop(node: NodeOf<'rcall'>, context: Visit) {
  const [name, receiver, [variable, ...body]] = node.args
  if (context.loopVariable) refuse(node, `'${name}' cannot be used inside another loop`)
  if (!isListOrCategories(receiver)) {
    refuse(receiver, `'${name}' works on 'categories' and on lists that are written out only`)
  }
  if (variable?.op !== 'id') return refuse(node, `'${name}' needs the name of a variable first`)
  if (Object.hasOwn(variables, variable.args) && !isNewerName(variable.args)) {
    refuse(variable, `'${variable.args}' is the name of another variable`)
  }
  const inside = { ...context, loopVariable: variable.args }
  visitAll([receiver, ...body], inside)
  const length = receiver.op === 'list' ? receiver.args.length : categoriesAssumed
  if (length * countNodes(body) > loopStepsMax) {
    refuse(
      node,
      `'${name}' takes more than ${loopStepsMax} steps: shorten the list or what is asked`,
    )
  }
}

function countNodes(nodes: readonly ASTNode[]): number {
  return nodes.reduce((sum, node) => sum + 1 + countNodes(childrenOf(node)), 0)
}

/** The parts of a node that are expressions themselves. */
export function childrenOf(node: ASTNode): readonly ASTNode[] {
  switch (node.op) {
    case 'value':
    case 'id':
      return []
    case '!_':
    case '-_':
      return [node.args]
    case '.':
    case '.?':
      return [node.args[0]]
    case 'call':
      return node.args[1]
    case 'rcall':
      return [node.args[1], ...node.args[2]]
    case 'map':
      return node.args.flat()
    default:
      return node.args
  }
}

const isListOrCategories = (node: ASTNode) =>
  node.op === 'list' || (node.op === 'id' && node.args === 'categories')

/** The text of the only argument, if it is written in quotes. */
function onlyText(args: readonly ASTNode[]): string | null {
  const [only] = args
  return args.length === 1 && only?.op === 'value' && typeof only.args === 'string'
    ? only.args
    : null
}

/** The texts of a list that is written out, each with its node; null if the only argument is anything else. */
export function textsOfList(args: readonly ASTNode[]): [string, ASTNode][] | null {
  const [list] = args
  if (args.length !== 1 || list?.op !== 'list' || list.args.length === 0) return null
  const texts = list.args.map((element) => [onlyText([element]), element] as const)
  return texts.every((pair): pair is [string, ASTNode] => pair[0] !== null) ? texts : null
}
