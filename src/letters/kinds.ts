/** Kinds of sources: what letters must know of a source before it is opened. The list of sources declares them once per process. */

import { SOURCE_NAMES } from './shapes.ts'

/** Also the name of its engine, where it has only one. */
export type SourceName = string

export interface SourceKind {
  readonly name: SourceName
  /** Words of history by act, for letters of the engine of its name. */
  readonly words?: Readonly<Record<string, string>>
  /** Further operations of history that happen to its letters. */
  readonly operations?: readonly string[]
  /** Letters go back to queues of the office: they can be moved, and keep the order of their keys. */
  readonly goesToQueues?: boolean
  readonly hasEngines?: boolean
  /** Letters keep the row keys of their source ids, see `keptRowKey`; the office makes the others. */
  readonly keepsRowKeys?: boolean
  readonly takesReports?: boolean
  /** Letters were items of the office's queues; their source ids are item ids. */
  readonly capturesItems?: boolean
  /** Letters leave over a network: leased while being sent, counted once they have left. */
  readonly sendsOutside?: boolean
  /** Letters of one key leave in order, different keys in parallel. */
  readonly ordersByKey?: boolean
  readonly unrepairable?: string
}

const KINDS = new Map<SourceName, { readonly kind: SourceKind; readonly times: number }>()

/** Declares a kind until every declarer has called the returned function: a process may open several offices. */
export function declareKind(kind: SourceKind): () => void {
  const { name } = kind
  KINDS.set(name, { kind, times: (KINDS.get(name)?.times ?? 0) + 1 })
  nameAll()
  let isForgotten = false
  return () => {
    if (isForgotten) return
    isForgotten = true
    const times = (KINDS.get(name)?.times ?? 0) - 1
    if (times > 0) KINDS.set(name, { kind, times })
    else KINDS.delete(name)
    nameAll()
  }
}

/** Schemas of source names are made before any kind is declared. */
const nameAll = (): void => void SOURCE_NAMES.splice(0, Number.POSITIVE_INFINITY, ...KINDS.keys())

/** Of a source that is gone only the name is known. */
export const kindOf = (name: SourceName): SourceKind => KINDS.get(name)?.kind ?? { name }

export const sourceKinds = (): readonly SourceKind[] => [...KINDS.values()].map(({ kind }) => kind)

/** The only source with engines, and the only one that takes reports. */
export const sourceOfEngines = (): SourceName => onlyOneThat('hasEngines')
export const sourceOfReports = (): SourceName => onlyOneThat('takesReports')

function onlyOneThat(trait: 'hasEngines' | 'takesReports'): SourceName {
  const kind = sourceKinds().find((each) => each[trait] === true)
  if (kind === undefined) throw new Error(`no source was declared that ${trait}`)
  return kind.name
}

export const sourceNames = (): readonly SourceName[] => SOURCE_NAMES

/** Letters of other sources have an order of their own. */
export const goesToQueues = (source: SourceName): boolean => kindOf(source).goesToQueues === true
