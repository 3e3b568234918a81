import { openGcpBackend } from './gcp.ts';
import { describeProvider } from './suite.ts';

describeProvider('gcp', openGcpBackend);
