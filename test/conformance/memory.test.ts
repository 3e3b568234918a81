import { openMemoryBackend } from './memory.ts';
import { describeProvider } from './suite.ts';

describeProvider('memory', openMemoryBackend);
