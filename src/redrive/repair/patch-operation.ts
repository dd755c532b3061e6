/** Operations of JSON Patch (RFC 6902) as a recipe gives them. */
import { isBeyondWhole, isRawNumber, membersOf } from './exact-json.ts'
import { isBelow, MOST_LEVELS, pointerProblem } from './json-pointer.ts'
import { type Fields, kindOf, refuse, shown } from './recipe-fields.ts'

/** An operation of JSON Patch (RFC 6902). Values are exact (see exact-json.ts). */
export type PatchOperation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string }
  | { readonly op: 'move' | 'copy'; readonly from: string; readonly path: string }

const OPERATIONS = ['add', 'remove', 'replace', 'move', 'copy', 'test'] as const
export const MOST_OPERATIONS = 100

/** The operations in a request, or a refusal that names the first that is wrong. */
export function parsePatch(value: unknown, parameter: string): readonly PatchOperation[] {
  if (!Array.isArray(value)) throw refuse(parameter, `it is ${kindOf(value)}, give a list of operations`)
  if (value.length === 0) throw refuse(parameter, 'it is empty, give at least one operation')
  if (value.length > MOST_OPERATIONS) {
    throw refuse(parameter, `it has ${value.length} operations, at most ${MOST_OPERATIONS} are allowed`)
  }
  return value.map((operation, index) => parseOperation(operation, `${parameter}[${index}]`))
}

/** Members that the operation does not know are left out, as RFC 6902 demands. */
function parseOperation(value: unknown, parameter: string): PatchOperation {
  const fields = membersOf(value)
  if (fields === null) throw refuse(parameter, `it is ${kindOf(value)}, give an object with op and path`)
  const op = OPERATIONS.find((known) => known === fields.op)
  if (op === undefined)
    throw refuse(`${parameter}.op`, `${shown(fields.op)}, give one of ${OPERATIONS.join(', ')}`)
  const path = parsePointer(fields, 'path', parameter)
  switch (op) {
    case 'add':
    case 'replace':
    case 'test':
      return { op, path, value: parseValue(fields, `${parameter}.value`) }
    case 'remove':
      if (path === '') throw refuse(`${parameter}.path`, 'the whole payload cannot be removed')
      return { op, path }
    case 'move':
    case 'copy': {
      const from = parsePointer(fields, 'from', parameter)
      if (op === 'move' && isBelow(path, from)) {
        throw refuse(`${parameter}.path`, 'it lies within from, and a value cannot be moved into itself')
      }
      return { op, from, path }
    }
  }
}

function parsePointer(fields: Fields, name: 'path' | 'from', operation: string): string {
  const pointer = fields[name]
  const parameter = `${operation}.${name}`
  if (typeof pointer !== 'string') throw refuse(parameter, `${shown(pointer)}, give a JSON Pointer`)
  const problem = pointerProblem(pointer)
  if (problem !== null) throw refuse(parameter, problem)
  return pointer
}

function parseValue(fields: Fields, parameter: string): unknown {
  if (!Object.hasOwn(fields, 'value')) throw refuse(parameter, 'it is missing')
  const problem = valueProblem(fields.value, MOST_LEVELS)
  if (problem !== null) throw refuse(parameter, problem)
  return fields.value
}

/** What is wrong with a value that shall be written; null when nothing is. */
function valueProblem(value: unknown, levels: number): string | null {
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) return 'it has a number that is too large to be read'
    return isBeyondWhole(value) ? `it has the number ${value}, which may have lost digits on its way` : null
  }
  if (typeof value !== 'object' || value === null || isRawNumber(value)) return null
  if (levels === 0) return `it is nested more than ${MOST_LEVELS} levels deep`
  for (const part of Object.values(value)) {
    const problem = valueProblem(part, levels - 1)
    if (problem !== null) return problem
  }
  return null
}
