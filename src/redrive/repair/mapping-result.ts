/** What a mapping gave, as JSON: JSONata's own lists and functions do not leave its thread. */
import { MOST_LEVELS, pointerBelow, showPointer } from './json-pointer.ts'
import type { MappingNumbers } from './mapping-numbers.ts'
import { MappingRefusal } from './mapping-refusal.ts'

/** The exact value that a result stands for. Bounded by its depth alone: time and memory are those of the thread. */
export function mappingResult(result: unknown, numbers: MappingNumbers): unknown {
  if (result === undefined) throw new MappingRefusal('the mapping gives nothing')
  return jsonOf('', result, numbers, 0)
}

function jsonOf(path: string, value: unknown, numbers: MappingNumbers, level: number): unknown {
  if (level > MOST_LEVELS) {
    throw new MappingRefusal(
      `the mapping gives something that is nested more than ${MOST_LEVELS} levels deep`,
    )
  }
  switch (typeof value) {
    case 'number':
      return numbers.exact(value)
    case 'string':
      numbers.checkText(value)
      return value
    case 'boolean':
      return value
    case 'undefined':
      return null
    case 'object':
      if (value === null) return null
      if (isFunction(value)) break
      if (Array.isArray(value)) {
        // By number: lists of JSONata have members beside their elements.
        return Array.from(value, (element, index) =>
          jsonOf(pointerBelow(path, index), element, numbers, level + 1),
        )
      }
      return objectOf(path, value, numbers, level)
  }
  throw new MappingRefusal(`the mapping gives a function, at ${showPointer(path)}`)
}

/** Functions written in JSONata are objects with this mark. */
const isFunction = (value: object): boolean =>
  ['_jsonata_lambda', '_jsonata_function'].some((mark) => Object.hasOwn(value, mark))

function objectOf(path: string, value: object, numbers: MappingNumbers, level: number): object {
  // Without a prototype every name is only a name.
  const members: Record<string, unknown> = Object.create(null)
  for (const [name, member] of Object.entries(value)) {
    if (member !== undefined) {
      members[name] = jsonOf(pointerBelow(path, name), member, numbers, level + 1)
    }
  }
  return members
}
