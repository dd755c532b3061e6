/** Before every test file: the sources are declared, as they are in every process of the product, whichever files ran before. */
import '../../src/sources/index.ts'
