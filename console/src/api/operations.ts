import type { InputOf, ResponseOf } from '@gatehouse/contract/endpoint'
import type { endpoints } from '@gatehouse/contract/endpoints'

type Listed = (typeof endpoints)[number]

/**
 * Every operation by its method and path, as the contract describes it. Only types: a wrong path, member or answer does not
 * compile, and nothing of the contract is in the bundle.
 */
type Operations = { [E in Listed as `${E['method']} ${E['path']}`]: E }

export type OperationName = keyof Operations
export type Input<Name extends OperationName> = InputOf<Operations[Name]>
export type Answer<Name extends OperationName> = ResponseOf<Operations[Name]>
export type Item<Name extends OperationName> =
  Answer<Name> extends { data: (infer Each)[] } ? Each : never
