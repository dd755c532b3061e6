/** Why a letter is not repaired by a mapping, in words for operators. */
export class MappingRefusal extends Error {
  override readonly name = 'MappingRefusal'
}
